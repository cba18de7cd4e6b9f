#!lua flags=no-writes
-- List claimed jobs whose lease has run out here. ARGV: now, how many, queues (key).

local ids = {}

for _, queue in ipairs(redis.call('HKEYS', ARGV[3])) do
  local most = tonumber(ARGV[2]) - #ids
  if most > 0 then
    local found = redis.call('ZRANGE', queue .. ':leases', '-inf', ARGV[1], 'BYSCORE', 'LIMIT', 0, most)
    for _, id in ipairs(found) do table.insert(ids, id) end
  end
end

return ids
