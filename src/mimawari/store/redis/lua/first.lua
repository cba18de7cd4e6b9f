#!lua flags=no-writes
-- Tell the earliest time on the schedule, or nothing.
-- ARGV: schedules (key), then the schedules to leave out.

local left_out, earliest = {}, nil
for at = 2, #ARGV do left_out[ARGV[at]] = true end

for _, key in ipairs(redis.call('SMEMBERS', ARGV[1])) do
  if not left_out[key] then
    local time = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]
    if time and (not earliest or tonumber(time) < tonumber(earliest)) then earliest = time end
  end
end

return earliest
