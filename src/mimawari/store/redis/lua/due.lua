#!lua flags=no-writes
-- List the members whose time has come, each after its schedule's name.
-- ARGV: schedules (key), until, how many of each, then the schedules to leave out.

local left_out, found = {}, {}
for at = 4, #ARGV do left_out[ARGV[at]] = true end

for _, key in ipairs(redis.call('SMEMBERS', ARGV[1])) do
  if not left_out[key] then
    local due = redis.call('ZRANGE', key, '-inf', ARGV[2], 'BYSCORE', 'LIMIT', 0, ARGV[3])
    for _, member in ipairs(due) do
      table.insert(found, key)
      table.insert(found, member)
    end
  end
end

return found
