#!lua
-- Change what is said of this Redis, unless it was emptied or another fills it meanwhile.
-- KEYS: epoch. ARGV: what we said of it, what we say now, for how many milliseconds (0: for good).

if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
if ARGV[3] ~= '0' then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
return 1
