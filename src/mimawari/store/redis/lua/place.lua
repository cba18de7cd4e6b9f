#!lua
-- Set the times of members, or forget those that have none; each stands in one schedule only.
-- ARGV: channel, message, schedules (key), that of the IPs, then of each member: schedule (or
-- ''), member, seconds. An IP stands in its schedule by its number alone.

local ips = ARGV[4]
local schedules = redis.call('SMEMBERS', ARGV[3])

for at = 5, #ARGV, 3 do
  local mine, member = ARGV[at], ARGV[at + 1]
  local number_of_ip = member:match('^hot:(.*)$')
  for _, key in ipairs(schedules) do
    if key == ips and number_of_ip then
      redis.call('ZREM', key, number_of_ip)
    elseif key ~= ips and key ~= mine then
      redis.call('ZREM', key, member)
    end
  end
  if mine ~= '' then
    redis.call('ZADD', mine, ARGV[at + 2], mine == ips and number_of_ip or member)
    redis.call('SADD', ARGV[3], mine)
  end
end

redis.call('PUBLISH', ARGV[1], ARGV[2])
