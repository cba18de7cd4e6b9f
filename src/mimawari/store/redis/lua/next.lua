#!lua flags=no-writes
-- Tell when the next job is due or the next lease runs out, or nothing.
-- ARGV: of each queue: queue, usual priority.

local earliest = nil

local function see(at)
  if at and (not earliest or at < earliest) then earliest = at end
end

for at = 1, #ARGV, 2 do
  local queue, usual = ARGV[at], ARGV[at + 1]
  for _, part in ipairs({':delayed', ':suspects', ':leases'}) do
    see(tonumber(redis.call('ZRANGE', queue .. part, 0, 0, 'WITHSCORES')[2]))
  end
  for _, priority in ipairs(redis.call('ZRANGE', queue .. ':levels', 0, -1)) do
    local message = redis.call('LINDEX', level(queue, usual, priority), -1)
    local id = message and id_of(message)
    local job = id and find(queue, id)
    if job then see(job.due) end
    -- Somebody else's message: whoever claims next puts it aside.
    if message and not id then see(0) end
  end
end

return earliest and number(earliest)
