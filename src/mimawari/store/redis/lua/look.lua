#!lua flags=allow-oom
-- Say which Redis this is, and find what other programs have done with the queues: messages of
-- theirs are set aside; of ours, those that they have taken are reported.
-- KEYS: epoch, queues, processed, their times. ARGV: now (seconds), how long a processed task
-- stays, how many findings, how long a queue may be to be looked through each time, whether to look
-- at all queues, then of each queue that others take part in: queue, usual priority.
-- Returns the epoch and then of each finding: what, queue, name, version or message.
--   stranger  a message that was set aside, by its name there
--   taken     a job of ours that another program has claimed, with its version
--   held      a message that another program has written and claimed
--   lost      a job that stood in no list, and is forgotten here

local found, most = {redis.call('GET', KEYS[1]) or ''}, tonumber(ARGV[3])
local usuals, shared = {}, {}

local function report(...)
  for _, part in ipairs({...}) do table.insert(found, part) end
  most = most - 1
end

local function lists_of(queue, usual)
  local lists = {[queue] = usual}
  for _, priority in ipairs(redis.call('ZRANGE', queue .. ':levels', 0, -1)) do
    lists[level(queue, usual, priority)] = priority
  end
  return lists
end

local function look_through(queue, lists, seen)
  for list, priority in pairs(lists) do
    for _, message in ipairs(redis.call('LRANGE', list, 0, -1)) do
      local id, job = ours(queue, message)
      if job and job.place == READY and job.priority == priority and not seen[id] then
        seen[id] = true
      elseif most > 0 then
        redis.call('LREM', list, 1, message)
        -- A copy of what is elsewhere is nothing new.
        if not job then set_aside(queue, message) end
      end
    end
    if redis.call('EXISTS', list) == 0 then redis.call('ZREM', queue .. ':levels', priority) end
  end
end

local function look_at_claimed(queue, seen)
  local raws = {}
  for _, raw in ipairs(redis.call('HVALS', queue .. ':raw')) do raws[raw] = true end
  for _, message in ipairs(redis.call('LRANGE', queue .. ':processing', 0, -1)) do
    local id, job = ours(queue, message)
    if job and job.place == READY and not seen[id] then
      seen[id] = true
      if most > 0 then report('taken', queue, id, number(job.version)) end
    elseif job and job.place ~= CLAIMED then
      redis.call('LREM', queue .. ':processing', 1, message)
    elseif not job and not raws[message] and most > 0 then
      report('held', queue, '', message)
    end
  end
end

local function look_for_missing(queue, usual, seen)
  local kept = redis.call('HKEYS', queue .. ':jobs')
  for _, id in ipairs(kept) do
    local job = not seen[id] and most > 0 and find(queue, id)
    if job and job.place == READY then
      if shared[queue] then
        report('taken', queue, id, number(job.version))
      else
        remove(queue, usual, id, job)
        report('lost', queue, id, '')
      end
    end
  end
end

for at = 6, #ARGV, 2 do usuals[ARGV[at]], shared[ARGV[at]] = ARGV[at + 1], true end
local all = ARGV[5] == '1' and redis.call('HGETALL', KEYS[2]) or {}
for at = 1, #all, 2 do usuals[all[at]] = all[at + 1] end
for _, queue in ipairs(redis.call('SMEMBERS', STRANGERS)) do
  usuals[queue] = usuals[queue] or redis.call('HGET', KEYS[2], queue)
end

local function look_at(queue, usual)
  local parts = {queue, queue .. ':jobs', queue .. ':processing', queue .. ':strangers'}
  if redis.call('EXISTS', unpack(parts)) == 0 then return end
  local lists, listed, ready = lists_of(queue, usual), 0, redis.call('HLEN', queue .. ':jobs')
  for list in pairs(lists) do listed = listed + redis.call('LLEN', list) end
  for _, part in ipairs({':delayed', ':suspects', ':leases'}) do
    ready = ready - redis.call('ZCARD', queue .. part)
  end
  local held, leased = redis.call('LLEN', queue .. ':processing'), redis.call('ZCARD', queue .. ':leases')
  local is_odd, there = listed ~= ready or held ~= leased, listed + held
  if is_odd or shared[queue] and there > 0 and there <= tonumber(ARGV[4]) then
    local seen = {}
    look_through(queue, lists, seen)
    look_at_claimed(queue, seen)
    if is_odd then look_for_missing(queue, usual, seen) end
  end
  local aside = redis.call('HGETALL', queue .. ':strangers')
  for at = 1, #aside, 2 do
    if most > 0 then report('stranger', queue, aside[at], aside[at + 1]) end
  end
end

for queue, usual in pairs(usuals) do look_at(queue, usual) end

forget_processed(KEYS[3], KEYS[4], tonumber(ARGV[1]) - tonumber(ARGV[2]))
return found
