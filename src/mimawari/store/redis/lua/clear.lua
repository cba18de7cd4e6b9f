#!lua flags=allow-oom
-- Forget all queues of a program whose messages had another form; they are told again.
-- KEYS: that program's epoch, queues, processed, their times. ARGV: now (seconds).

if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end

for _, queue in ipairs(redis.call('HKEYS', KEYS[2])) do
  for _, priority in ipairs(redis.call('ZRANGE', queue .. ':levels', 0, -1)) do
    redis.call('DEL', queue .. ':priority:' .. priority)
  end
  redis.call('DEL', queue)
  for part in ('levels delayed suspects processing started leases jobs pending keys deadletter'):gmatch('%S+') do
    redis.call('DEL', queue .. ':' .. part)
  end
end

for _, task in ipairs(redis.call('SMEMBERS', KEYS[3])) do
  redis.call('ZADD', KEYS[4], 'NX', ARGV[1], task)
end

redis.call('DEL', KEYS[1], KEYS[2])
return 1
