#!lua flags=allow-oom
-- Count the due jobs that nobody has claimed. ARGV: now, then of each queue: queue, usual priority.

local now, depths = tonumber(ARGV[1]), {}

for at = 2, #ARGV, 2 do
  local queue, usual = ARGV[at], ARGV[at + 1]
  promote(queue, usual, now)
  local depth = redis.call('ZCOUNT', queue .. ':suspects', '-inf', number(now))
  for _, priority in ipairs(redis.call('ZRANGE', queue .. ':levels', 0, -1)) do
    depth = depth + redis.call('LLEN', level(queue, usual, priority))
  end
  table.insert(depths, depth)
end

return depths
