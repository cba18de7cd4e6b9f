#!lua flags=allow-oom
-- Take out jobs that are live no more; keep the newest dead letters and who was processed.
-- ARGV: force, how many dead letters, processed (key), its seconds, the jobs in JSON, each:
-- queue, usual priority, id, version, key, dead letter (or ''), processed task (or '').

local force = ARGV[1] == '1'

for _, told in ipairs(cjson.decode(ARGV[5])) do
  local queue, usual, id, version, key, letter, task = unpack(told)
  local old = find(queue, id)
  if old and (force or old.version <= version) then
    take_out(queue, usual, id, old)
    redis.call('HDEL', queue .. ':jobs', id)
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
    redis.call('SADD', ARGV[3], task)
    redis.call('EXPIRE', ARGV[3], ARGV[4], 'NX')
  end
end
