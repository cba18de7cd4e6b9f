#!lua flags=allow-oom
-- List claimed jobs whose lease has run out here, and those whose claim nobody has confirmed.
-- KEYS: calls, their times. ARGV: now, how many, queues (key).

local ids = {}

for _, call in ipairs(redis.call('ZRANGE', KEYS[2], '-inf', ARGV[1], 'BYSCORE', 'LIMIT', 0, ARGV[2])) do
  for id in (redis.call('HGET', KEYS[1], call) or ''):gmatch('%S+') do table.insert(ids, id) end
  confirm_calls(KEYS[1], KEYS[2], call)
end

for _, queue in ipairs(redis.call('HKEYS', ARGV[3])) do
  local most = tonumber(ARGV[2]) - #ids
  if most > 0 then
    local found = redis.call('ZRANGE', queue .. ':leases', '-inf', ARGV[1], 'BYSCORE', 'LIMIT', 0, most)
    for _, id in ipairs(found) do table.insert(ids, id) end
  end
end

return ids
