-- Carries out verdicts, in order.
--
-- KEYS: the stream
-- ARGV: group, consumer, whether to delete what is acked, then for each verdict
-- the entry's id, the count it was delivered with, and the idle time in ms that
-- it gets, or 'ack'
-- returns for each whether the entry was there
local stream, group, me, delete = KEYS[1], ARGV[1], ARGV[2], ARGV[3] == '1'
local there = {}

local function ack(id)
  local n = redis.call('XACK', stream, group, id)
  if n == 1 and delete then
    redis.call('XDEL', stream, id)
  end
  return n
end

-- Only what is still this very delivery is touched: by now the entry may be
-- somebody else's, or a later delivery to this consumer.
local function move(id, count, idle)
  local p = redis.call('XPENDING', stream, group, id, id, 1)[1]
  if not p or p[2] ~= me or p[4] ~= count then
    return 0
  end
  return #redis.call('XCLAIM', stream, group, me, 0, id, 'IDLE', idle, 'JUSTID')
end

for i = 4, #ARGV, 3 do
  local id, count, idle = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2]
  there[#there + 1] = idle == 'ack' and ack(id) or idle ~= 'ack' and move(id, count, idle)
end
return there
