-- What the queue's scripts share; it stands before each of them.
--
-- Of a queue Q:  Q (list)              due jobs of the usual priority, the next one at the right
--                Q:priority:N (list)   due jobs of another priority
--                Q:levels (zset)       the priorities that have due jobs
--                Q:delayed (zset)      jobs whose time has not come, by their time
--                Q:suspects (zset)     jobs that were there in several crashes, by their time
--                Q:processing (list)   claimed jobs;  Q:started (hash) since when
--                Q:leases (zset)       claimed jobs by the time their lease runs out
--                Q:jobs (hash)         every live job: version, place, priority, time, message
--                Q:pending (set)       the keys that live;  Q:keys (hash) whose they are
-- Of all queues:  animetop:handed (hash)         what each unconfirmed call has handed out
--                 animetop:handed:until (zset)   those calls by the time they lapse
-- Times are microseconds since 1970. A version is twice the job's token, and one more while it
-- is pending, so whatever is told late is known by its number to be old.

local READY, DELAYED, SUSPECT, CLAIMED = 'r', 'd', 's', 'p'

local function level(queue, usual, priority)
  if priority == usual then return queue end
  return queue .. ':priority:' .. priority
end

local function number(value)
  return string.format('%.0f', value)
end

local function find(queue, id)
  local kept = redis.call('HGET', queue .. ':jobs', id)
  if not kept then return nil end
  local version, place, priority, due, message = kept:match('^(%d+) (%a) (-?%d+) (-?%d+) (.*)$')
  return {
    version = tonumber(version), place = place, priority = priority, due = tonumber(due),
    message = message,
  }
end

local function keep(queue, id, job)
  local head = number(job.version) .. ' ' .. job.place .. ' ' .. job.priority
  redis.call('HSET', queue .. ':jobs', id, head .. ' ' .. number(job.due) .. ' ' .. job.message)
end

local function id_of(message)
  return message:match('^{"jobId":"([^"]*)"')
end

local function append(queue, usual, id, job)
  redis.call('LPUSH', level(queue, usual, job.priority), job.message)
  redis.call('ZADD', queue .. ':levels', job.priority, job.priority)
end

local function take_out(queue, usual, id, job)
  if job.place == READY then
    local list = level(queue, usual, job.priority)
    redis.call('LREM', list, -1, job.message)
    if redis.call('EXISTS', list) == 0 then redis.call('ZREM', queue .. ':levels', job.priority) end
  elseif job.place == DELAYED then
    redis.call('ZREM', queue .. ':delayed', id)
  elseif job.place == SUSPECT then
    redis.call('ZREM', queue .. ':suspects', id)
  else
    -- The oldest stand at the right, and mostly end first.
    redis.call('LREM', queue .. ':processing', -1, job.message)
    redis.call('HDEL', queue .. ':started', id)
    redis.call('ZREM', queue .. ':leases', id)
  end
end

local function hold(queue, id, job, now)
  redis.call('LPUSH', queue .. ':processing', job.message)
  redis.call('HSET', queue .. ':started', id, number(math.floor(now / 1000000)))
  redis.call('ZADD', queue .. ':leases', number(job.due), id)
end

-- Move what has become due to the end of its line; return whether some may be left.
local function promote(queue, usual, now)
  local ids = redis.call('ZRANGE', queue .. ':delayed', '-inf', number(now), 'BYSCORE', 'LIMIT', 0, 1000)
  for _, id in ipairs(ids) do
    local job = find(queue, id)
    redis.call('ZREM', queue .. ':delayed', id)
    if job then
      job.place = READY
      append(queue, usual, id, job)
      keep(queue, id, job)
    end
  end
end

-- Forget calls, whose names stand in one text, because their callers have confirmed them.
local function confirm_calls(calls, times, names)
  for name in names:gmatch('%S+') do
    redis.call('HDEL', calls, name)
    redis.call('ZREM', times, name)
  end
end
