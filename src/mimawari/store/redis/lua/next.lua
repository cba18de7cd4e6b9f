#!lua flags=no-writes
-- Tell when the next job is due, or the next lease or unconfirmed claim runs out, or nothing.
-- KEYS: calls, their times. ARGV: confirmed calls, then of each queue: queue, usual priority.
-- A confirmed call is struck out by the next claim: a write here would cost each turn one more.

local earliest = nil

local function see(at)
  if at and (not earliest or at < earliest) then earliest = at end
end

local confirmed = {}
for name in ARGV[1]:gmatch('%S+') do confirmed[name] = true end

local calls = redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')
for at = 1, #calls, 2 do
  if not confirmed[calls[at]] then see(tonumber(calls[at + 1])) end
end

for at = 2, #ARGV, 2 do
  local queue, usual = ARGV[at], ARGV[at + 1]
  for _, part in ipairs({':delayed', ':suspects', ':leases'}) do
    see(tonumber(redis.call('ZRANGE', queue .. part, 0, 0, 'WITHSCORES')[2]))
  end
  for _, priority in ipairs(redis.call('ZRANGE', queue .. ':levels', 0, -1)) do
    local message = redis.call('LINDEX', level(queue, usual, priority), -1)
    if message then
      local _, job = ours(queue, message)
      -- Another program's message is set aside by whoever claims next.
      see(job and job.due or 0)
    end
  end
end

return earliest and number(earliest)
