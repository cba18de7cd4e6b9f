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
--                Q:ids (hash)          whose job a message is, by its SHA-1, where it names none
--                Q:raw (hash)          how another program wrote a message that it has claimed
--                Q:strangers (hash)    messages of other programs until SQL has taken them in
-- Of all queues:  animetop:handed (hash)         what each unconfirmed call has handed out
--                 animetop:handed:until (zset)   those calls by the time they lapse
--                 animetop:strangers (set)       the queues that have messages set aside
-- Times are microseconds since 1970. A version is twice the job's token, and one more while it
-- is pending, so whatever is told late is known by its number to be old.

local READY, DELAYED, SUSPECT, CLAIMED = 'r', 'd', 's', 'p'
local STRANGERS = 'animetop:strangers'

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

-- Return the name that our own messages begin with: of a job, or else of a task.
local function name_of(message)
  return message:match('^{"jobId":"([^"]*)"') or message:match('^{"taskId":"([^"]*)"')
end

-- Return whose message this is, and the job; nothing if we have not written it.
local function ours(queue, message)
  local id = message:match('^{"jobId":"([^"]*)"')
  id = id or redis.call('HGET', queue .. ':ids', redis.sha1hex(message))
  local job = id and find(queue, id)
  if job and job.message == message then return id, job end
end

local function sign(queue, id, message)
  if message:match('^{"jobId":"') then return end
  redis.call('HSET', queue .. ':ids', redis.sha1hex(message), id)
end

local function unsign(queue, message)
  if not message:match('^{"jobId":"') then redis.call('HDEL', queue .. ':ids', redis.sha1hex(message)) end
end

-- Keep a message that we have not written until SQL has taken it in, or buried it.
local function set_aside(queue, message)
  local time, aside = redis.call('TIME'), queue .. ':strangers'
  local number_of_it = redis.call('HLEN', aside)
  local name = time[1] .. string.format('%06d', time[2]) .. '-' .. number_of_it
  redis.call('HSET', aside, name, message)
  redis.call('SADD', STRANGERS, queue)
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
    local raw = redis.call('HGET', queue .. ':raw', id)
    redis.call('LREM', queue .. ':processing', -1, raw or job.message)
    if raw then redis.call('HDEL', queue .. ':raw', id) end
    redis.call('HDEL', queue .. ':started', id)
    redis.call('ZREM', queue .. ':leases', id)
  end
end

local function remove(queue, usual, id, job)
  take_out(queue, usual, id, job)
  unsign(queue, job.message)
  redis.call('HDEL', queue .. ':jobs', id)
end

local function note_claim(queue, id, job, now)
  redis.call('HSET', queue .. ':started', id, number(math.floor(now / 1000000)))
  redis.call('ZADD', queue .. ':leases', number(job.due), id)
end

local function hold(queue, id, job, now)
  redis.call('LPUSH', queue .. ':processing', job.message)
  note_claim(queue, id, job, now)
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

-- Forget the tasks that were processed at a time or before.
local function forget_processed(processed, times, at)
  for _, task in ipairs(redis.call('ZRANGE', times, '-inf', at, 'BYSCORE', 'LIMIT', 0, 1000)) do
    redis.call('SREM', processed, task)
    redis.call('ZREM', times, task)
  end
end
