#!lua flags=allow-oom
-- Give up calls whose reply was lost; return the ids of the jobs that they have handed out.
-- One that has not been carried out yet, since the server stood still, hands out nothing later.
-- KEYS: calls, their times. ARGV: when the notes lapse, then the calls.

local ids = {}

for at = 2, #ARGV do
  local handed = redis.call('HGET', KEYS[1], ARGV[at])
  for id in (handed or ''):gmatch('%S+') do table.insert(ids, id) end
  redis.call('HSET', KEYS[1], ARGV[at], '')
  redis.call('ZADD', KEYS[2], ARGV[1], ARGV[at])
end

return ids
