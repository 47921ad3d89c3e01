-- Deletes a consumer, unless something is pending with it: that would be deleted
-- as well.
--
-- KEYS: the stream
-- ARGV: group, consumer
local stream, group, me = KEYS[1], ARGV[1], ARGV[2]
if #redis.call('XPENDING', stream, group, '-', '+', 1, me) == 0 then
  redis.call('XGROUP', 'DELCONSUMER', stream, group, me)
end
return 0
