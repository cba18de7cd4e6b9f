#!lua
-- Take in live jobs as SQL has them; what is newer here stays, unless SQL is to have its way.
-- Return how many of those that wait were new or different.
-- ARGV: now, channel, message, force, queues (key), the jobs in JSON, each: queue, usual priority,
-- id, version, priority, due, crashed often, claimed, brought back perhaps, key, message.

local now, force = tonumber(ARGV[1]), ARGV[4] == '1'
local promoted, placed = {}, 0

-- Nothing is moved for nothing: whoever is told everything again must not lose its place.
local function is_same(old, job)
  return old.version == job.version and old.priority == job.priority and old.due == job.due
end

local function leave_dead_letters(queue, name)
  for _, message in ipairs(redis.call('LRANGE', queue .. ':deadletter', 0, -1)) do
    if name_of(message) == name then redis.call('LREM', queue .. ':deadletter', 1, message) end
  end
end

for _, told in ipairs(cjson.decode(ARGV[6])) do
  local queue, usual, id, version, priority, due, is_suspect, is_claimed, is_back, key, message =
    unpack(told)
  local job = {version = version, priority = priority, due = due, message = message}
  if not promoted[queue] then
    promote(queue, usual, now)
    redis.call('HSET', ARGV[5], queue, usual)
    promoted[queue] = true
  end
  local old = find(queue, id)
  if not old or (force or old.version <= job.version) and not is_same(old, job) then
    if old then remove(queue, usual, id, old) end
    if is_back then leave_dead_letters(queue, name_of(message)) end
    sign(queue, id, message)
    if is_claimed then
      job.place = CLAIMED
      hold(queue, id, job, now)
    elseif is_suspect then
      job.place = SUSPECT
      redis.call('ZADD', queue .. ':suspects', number(job.due), id)
    elseif job.due > now then
      job.place = DELAYED
      redis.call('ZADD', queue .. ':delayed', number(job.due), id)
    else
      job.place = READY
      append(queue, usual, id, job)
    end
    if job.place ~= CLAIMED then placed = placed + 1 end
    keep(queue, id, job)
    if key ~= '' then
      redis.call('SADD', queue .. ':pending', key)
      redis.call('HSET', queue .. ':keys', key, id)
    end
  end
end

if placed > 0 then redis.call('PUBLISH', ARGV[2], ARGV[3]) end
return placed
