-- Takes deliveries, as many as there is room for: first entries whose hold is
-- over, each with its count one higher, then new ones.
--
-- KEYS: the stream
-- ARGV: group, consumer, hold in ms, messages, bytes, whether to look for what is due
-- returns {{id, fields, count}...}, the ids of entries that were deleted while they
-- were pending, and whether the room is used up
local stream, group, me, hold = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local messages, bytes = tonumber(ARGV[4]), tonumber(ARGV[5])
local taken, deleted = {}, {}

local function take(entry, count)
  taken[#taken + 1] = {entry[1], entry[2], count}
  messages = messages - 1
  for _, part in ipairs(entry[2]) do
    bytes = bytes - #part
  end
end

local function pending(...)
  return redis.call('XPENDING', stream, group, ...)
end

if ARGV[6] == '1' then
  for _, p in ipairs(pending('IDLE', hold, '-', '+', messages)) do
    if bytes <= 0 then
      break
    end
    local id, owner, count = p[1], p[2], p[4]
    local entry = redis.call('XCLAIM', stream, group, me, 0, id, 'RETRYCOUNT', count + 1)[1]
    if entry then
      take(entry, count + 1)
    else
      deleted[#deleted + 1] = id
    end
    -- A consumer that died leaves its name behind. Should it live, Redis makes it
    -- again with its next read.
    if owner ~= me and #pending('-', '+', 1, owner) == 0 then
      redis.call('XGROUP', 'DELCONSUMER', stream, group, owner)
    end
  end
end

while messages > 0 and bytes > 0 do
  local new = redis.call('XREADGROUP', 'GROUP', group, me, 'COUNT', 1, 'STREAMS', stream, '>')
  if not new then
    break
  end
  take(new[1][2][1], 1)
end

return {taken, deleted, (messages > 0 and bytes > 0) and 0 or 1}
