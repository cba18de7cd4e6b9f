#!lua flags=allow-oom
-- Take out jobs that nobody knows any more, in whichever queue they are. ARGV: queues (key), ids.

local queues = redis.call('HGETALL', ARGV[1])

for at = 2, #ARGV do
  for each = 1, #queues, 2 do
    local old = find(queues[each], ARGV[at])
    if old then
      remove(queues[each], queues[each + 1], ARGV[at], old)
    end
  end
end
