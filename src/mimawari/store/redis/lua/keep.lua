#!lua
-- Keep a value until a time. KEYS: the value, the times, the names.
-- ARGV: name, value, until (microseconds), milliseconds to live.

if tonumber(ARGV[4]) > 0 then
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[4])
  redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
  redis.call('ZADD', KEYS[3], 0, ARGV[1])
else
  redis.call('DEL', KEYS[1])
  redis.call('ZREM', KEYS[2], ARGV[1])
  redis.call('ZREM', KEYS[3], ARGV[1])
end
