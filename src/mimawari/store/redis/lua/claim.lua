#!lua flags=allow-oom
-- Hand out due jobs and note until when; return, in JSON, want, id and version of each.
-- The call is noted until its caller has confirmed it, so that claims whose reply was lost are
-- found; a call that its caller has given up hands out nothing.
-- KEYS: calls, their times. ARGV: now, call, when it lapses, confirmed calls, then of each want:
-- queue, usual priority, how many, lease until, suspects too.

local now, call, claimed, suspected = tonumber(ARGV[1]), ARGV[2], {}, false
local ids = {}

confirm_calls(KEYS[1], KEYS[2], ARGV[4])
if redis.call('HEXISTS', KEYS[1], call) == 1 then return '[]' end

local function give(queue, id, job, until_at, number_of_want)
  table.insert(claimed, {number_of_want, id, number(job.version)})
  table.insert(ids, id)
  job.place, job.version, job.due = CLAIMED, job.version + 1, until_at
  hold(queue, id, job, now)
  keep(queue, id, job)
end

for at = 5, #ARGV, 5 do
  local queue, usual, want = ARGV[at], ARGV[at + 1], (at - 5) / 5
  local room, until_at = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  promote(queue, usual, now)
  while room > 0 do
    local first = redis.call('ZRANGE', queue .. ':levels', 0, 0)[1]
    if not first then break end
    local messages = redis.call('RPOP', level(queue, usual, first), room)
    for _, message in ipairs(messages or {}) do
      local id, job = ours(queue, message)
      if job and job.place == READY then
        give(queue, id, job, until_at, want)
        room = room - 1
      elseif not job then
        set_aside(queue, message)
      end
    end
    if redis.call('EXISTS', level(queue, usual, first)) == 0 then
      redis.call('ZREM', queue .. ':levels', first)
    end
  end
  if room > 0 and ARGV[at + 4] == '1' and not suspected then
    local due = redis.call('ZRANGE', queue .. ':suspects', '-inf', number(now), 'BYSCORE', 'LIMIT', 0, 1)
    local job = due[1] and find(queue, due[1])
    if due[1] then redis.call('ZREM', queue .. ':suspects', due[1]) end
    if job then
      suspected = true
      give(queue, due[1], job, until_at, want)
    end
  end
end

if #claimed == 0 then return '[]' end
redis.call('HSET', KEYS[1], call, table.concat(ids, ' '))
redis.call('ZADD', KEYS[2], ARGV[3], call)
return cjson.encode(claimed)
