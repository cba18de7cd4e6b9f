#!lua flags=allow-oom
-- Take out jobs that are live no more; keep the newest dead letters and who was processed.
-- KEYS: processed, their times. ARGV: force, how many dead letters, now, how long a processed task
-- stays (both in seconds), the jobs in JSON, each: queue, usual priority, id, version, key, dead
-- letter (or ''), processed task (or '').

local force, now, stays = ARGV[1] == '1', tonumber(ARGV[3]), tonumber(ARGV[4])

for _, told in ipairs(cjson.decode(ARGV[5])) do
  local queue, usual, id, version, key, letter, task = unpack(told)
  local old = find(queue, id)
  if old and (force or old.version <= version) then
    remove(queue, usual, id, old)
  end
  if key ~= '' and redis.call('HGET', queue .. ':keys', key) == id then
    redis.call('HDEL', queue .. ':keys', key)
    redis.call('SREM', queue .. ':pending', key)
  end
  if letter ~= '' then
    redis.call('LREM', queue .. ':deadletter', 1, letter)
    redis.call('LPUSH', queue .. ':deadletter', letter)
    redis.call('LTRIM', queue .. ':deadletter', 0, tonumber(ARGV[2]) - 1)
  end
  if task ~= '' then
    redis.call('SADD', KEYS[1], task)
    redis.call('ZADD', KEYS[2], 'NX', now, task)
    for _, key in ipairs(KEYS) do redis.call('EXPIRE', key, stays) end
  end
end

forget_processed(KEYS[1], KEYS[2], now - stays)
