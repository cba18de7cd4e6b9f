#!lua flags=allow-oom
-- Forget values by the start of their names, or those whose time is over; count them.
-- KEYS: the times, the names. ARGV: 'prefix' or 'until', prefix or time, hot names stand under
-- this start, and all others under this one.

local names
if ARGV[1] == 'until' then
  names = redis.call('ZRANGE', KEYS[1], '-inf', ARGV[2], 'BYSCORE')
elseif ARGV[2] == '' then
  names = redis.call('ZRANGE', KEYS[2], 0, -1)
else
  names = redis.call('ZRANGE', KEYS[2], '[' .. ARGV[2], '(' .. ARGV[2] .. '\255', 'BYLEX')
end

for _, name in ipairs(names) do
  local rest = not name:match(':making$') and name:match('^hot:(.*)$')
  redis.call('DEL', rest and ARGV[3] .. rest or ARGV[4] .. name)
  redis.call('ZREM', KEYS[1], name)
  redis.call('ZREM', KEYS[2], name)
end

return #names
