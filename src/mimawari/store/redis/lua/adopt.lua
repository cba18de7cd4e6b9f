#!lua flags=allow-oom
-- Note what SQL has made of other programs' messages.
-- ARGV: now, jobs in JSON that another program holds, each: queue, usual priority, id, version,
-- lease until; of each its own text (or ''), then pairs of a queue and the name of what was set
-- aside, or of '!' and queue, of a claimed text that means nothing.

local now, held = tonumber(ARGV[1]), cjson.decode(ARGV[2])

for at, told in ipairs(held) do
  local queue, usual, id, version, until_at = unpack(told)
  local raw, job = ARGV[2 + at], find(queue, id)
  if job and job.version <= version then
    if raw ~= '' then
      -- Its own text stands there already; ours would be a second one.
      take_out(queue, usual, id, job)
      redis.call('HSET', queue .. ':raw', id, raw)
    end
    job.place, job.version, job.due = CLAIMED, version, until_at
    note_claim(queue, id, job, now)
    keep(queue, id, job)
  end
end

for at = 3 + #held, #ARGV, 2 do
  local queue, name = ARGV[at], ARGV[at + 1]
  if queue:sub(1, 1) == '!' then
    redis.call('LREM', queue:sub(2) .. ':processing', 1, name)
  else
    redis.call('HDEL', queue .. ':strangers', name)
    if redis.call('EXISTS', queue .. ':strangers') == 0 then redis.call('SREM', STRANGERS, queue) end
  end
end
