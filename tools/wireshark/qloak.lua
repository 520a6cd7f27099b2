-- Qloak in Wireshark and tshark: key-agreement frames (EtherType 88B5) and, where a capture was taken
-- behind the validation of a node, the records of aggregated frames (88B6). Protected frames are 802.1AE,
-- which Wireshark knows by itself. The octets are drawn in docs/wire-format.md; no key is ever among them.
--
-- Try it:     tshark -X lua_script:tools/wireshark/qloak.lua -r line.pcap -Y qloak_agreement
-- Install it: copy it into the folder "Personal Lua Plugins" of Wireshark's Help, About, Folders.
--
-- A length or value that the format does not allow is an expert info of the severity "error": filter
-- `qloak_agreement.bad` and `qloak_mux.bad`. A frame that has one is no message for a node either.

local agreement = Proto("qloak_agreement", "Qloak key agreement")
local mux = Proto("qloak_mux", "Qloak aggregated frame")

local HEADER, MAC, KEY_ID = 20, 32, 16
local VERSION, AGGREGATED = 1, 0x80
-- The most that a frame carries: crates/qloak-node/src/key_handler/limits.rs.
local AHEAD_MAX, CHANNELS_MAX = 16, 48
local CLIENTS_MAX = 64
local FIRST, LAST = 0x80, 0x40

local types = {
  [1] = "hello", [2] = "welcome", [3] = "announce", [4] = "ready", [5] = "refuse", [6] = "sync",
}
local reasons = {
  [1] = "unknown channel", [2] = "unknown suite", [3] = "other PN form", [4] = "wrong SCI",
  [5] = "key unknown", [6] = "no SA", [7] = "other carriage",
}
local carriages = { [0] = "transparent", [1] = "aggregated" }

local a = {
  version = ProtoField.uint8("qloak_agreement.version", "Version"),
  type = ProtoField.uint8("qloak_agreement.type", "Type", base.DEC, types),
  length = ProtoField.uint16("qloak_agreement.length", "Length, version to MAC"),
  tag = ProtoField.bytes("qloak_agreement.tag", "Association tag"),
  counter = ProtoField.uint64("qloak_agreement.counter", "Counter"),
  mac = ProtoField.bytes("qloak_agreement.mac", "MAC (not checked)"),
  padding = ProtoField.bytes("qloak_agreement.padding", "Ethernet padding"),
  boot = ProtoField.bytes("qloak_agreement.boot", "Start of the initiator"),
  target_boot = ProtoField.bytes("qloak_agreement.target_boot", "Start of the target"),
  key_id = ProtoField.guid("qloak_agreement.key_id", "Key ID"),
  channel = ProtoField.uint16("qloak_agreement.channel", "Channel"),
  carriage = ProtoField.uint8("qloak_agreement.carriage", "Carriage", base.DEC, carriages, AGGREGATED),
  an = ProtoField.uint8("qloak_agreement.an", "AN"),
  suite = ProtoField.uint64("qloak_agreement.suite", "Suite", base.HEX),
  sci_address = ProtoField.ether("qloak_agreement.sci.address", "SCI, line port"),
  sci_channel = ProtoField.uint16("qloak_agreement.sci.channel", "SCI, channel"),
  change = ProtoField.uint64("qloak_agreement.change", "Change"),
  encoding = ProtoField.uint64("qloak_agreement.encoding", "Change that encodes now"),
  proof = ProtoField.bytes("qloak_agreement.proof", "Proof of possession"),
  reason = ProtoField.uint8("qloak_agreement.reason", "Reason", base.DEC, reasons),
  hears = ProtoField.bytes("qloak_agreement.hears", "Hears the association"),
  channels = ProtoField.uint8("qloak_agreement.channels", "Encoding SAs"),
  ahead = ProtoField.uint8("qloak_agreement.ahead", "Keys ahead"),
  ahead_key_id = ProtoField.guid("qloak_agreement.ahead.key_id", "Key ID ahead"),
}
agreement.fields = a
local a_bad = ProtoExpert.new("qloak_agreement.bad", "not the form of a key-agreement frame",
  expert.group.MALFORMED, expert.severity.ERROR)
agreement.experts = { a_bad }

local m = {
  record = ProtoField.none("qloak_mux.record", "Record"),
  first = ProtoField.bool("qloak_mux.first", "First piece", 8, nil, FIRST),
  last = ProtoField.bool("qloak_mux.last", "Last piece", 8, nil, LAST),
  client = ProtoField.uint8("qloak_mux.client", "Client port"),
  length = ProtoField.uint16("qloak_mux.length", "Length"),
  sequence = ProtoField.uint32("qloak_mux.sequence", "Fragment sequence"),
  piece = ProtoField.bytes("qloak_mux.piece", "Piece of a client frame"),
  fill = ProtoField.bytes("qloak_mux.fill", "Fill"),
}
mux.fields = m
local m_bad = ProtoExpert.new("qloak_mux.bad", "not the form of an aggregated frame",
  expert.group.MALFORMED, expert.severity.ERROR)
mux.experts = { m_bad }

-- The name of a suite, from its identifier in hex; nil for one that we do not have.
local function suite_name(identifier)
  local macsec = { ["0080c20001000001"] = "aes-128-gcm, 32-bit PN", ["0080c20001000002"] = "aes-256-gcm, 32-bit PN",
    ["0080c20001000003"] = "aes-128-gcm", ["0080c20001000004"] = "aes-256-gcm" }
  if macsec[identifier] then return macsec[identifier] end
  local mode, cipher, size = identifier:match("^02514c000001(%x%x)(%x)(%x)$")
  if not mode then return nil end
  local keyless = { ["83"] = "xor", ["84"] = "plain" }
  if keyless[mode] then return keyless[mode] end
  if mode == "03" then return "chacha20-poly1305" end
  cipher = ({ ["1"] = "aes", ["2"] = "camellia", ["3"] = "serpent" })[cipher]
  size = ({ ["1"] = "128", ["2"] = "192", ["3"] = "256" })[size]
  if not cipher or not size then return nil end
  if mode == "82" then return "raw-block-" .. cipher .. "-" .. size end
  mode = ({ ["01"] = "gcm", ["02"] = "ocb", ["81"] = "ctr" })[mode]
  return mode and cipher .. "-" .. size .. "-" .. mode
end

-- Walks over the octets from `at` to `stop`. What does not fit is told once and ends the walk: every
-- later call gives nil.
local function walk(tvb, at, stop, tree, bad)
  local self = { over = false }
  function self.fail(text)
    if not self.over then tree:add_proto_expert_info(bad, text) end
    self.over = true
  end
  function self.left() return stop - at end
  function self.next(octets, what)
    if self.over then return nil end
    if at + octets > stop then
      return self.fail(string.format("%s: %d octets wanted, %d left", what, octets, stop - at))
    end
    at = at + octets
    return tvb(at - octets, octets)
  end
  function self.add(field, octets, parent)
    local range = self.next(octets, "the next field")
    return range, range and (parent or tree):add(field, range)
  end
  return self
end

local function add_an(w, tree, with_carriage)
  local range = w.next(1, "AN")
  if not range then return nil end
  local octet = range:uint()
  if with_carriage then
    tree:add(a.carriage, range)
    octet = octet % AGGREGATED
  end
  tree:add(a.an, range, octet)
  if octet > 3 then w.fail(string.format("AN %d: 0 to 3 are allowed", octet)) end
  return octet
end

local function add_suite(w, tree)
  local range, item = w.add(a.suite, 8, tree)
  if not range then return nil end
  local identifier = tostring(range:bytes()):lower()
  local name = suite_name(identifier) or "unknown"
  item:append_text(" (" .. name .. ")")
  return name
end

local function add_ahead(w)
  local range = w.add(a.ahead, 1)
  if not range then return end
  local count = range:uint()
  if count > AHEAD_MAX then
    return w.fail(string.format("%d keys ahead: at most %d are allowed", count, AHEAD_MAX))
  end
  for _ = 1, count do w.add(a.ahead_key_id, KEY_ID) end
end

local function add_channel(w, tree)
  local range = w.add(a.channel, 2, tree)
  return range and range:uint()
end

-- Each body adds its fields and gives what the list of frames shall say.
local bodies = {
  [1] = function(w)
    w.add(a.boot, 16)
    w.add(a.key_id, KEY_ID)
  end,
  [2] = function(w)
    w.add(a.boot, 16)
    w.add(a.key_id, KEY_ID)
    w.add(a.target_boot, 16)
  end,
  [3] = function(w, tree)
    local channel, an = add_channel(w), add_an(w, tree, true)
    local name = add_suite(w)
    w.add(a.sci_address, 6)
    w.add(a.sci_channel, 2)
    w.add(a.change, 8)
    w.add(a.encoding, 8)
    w.add(a.key_id, KEY_ID)
    add_ahead(w)
    return channel and an and name and string.format("channel %d, AN %d, %s", channel, an, name)
  end,
  [4] = function(w, tree)
    local channel, an = add_channel(w), add_an(w, tree, false)
    w.add(a.change, 8)
    w.add(a.key_id, KEY_ID)
    w.add(a.proof, MAC)
    return channel and an and string.format("channel %d, AN %d", channel, an)
  end,
  [5] = function(w)
    local channel = add_channel(w)
    local range = w.add(a.reason, 1)
    local reason = range and reasons[range:uint()]
    if range and not reason then w.fail(string.format("reason %d is unknown", range:uint())) end
    w.add(a.change, 8)
    w.add(a.key_id, KEY_ID)
    return channel and reason and string.format("channel %d, %s", channel, reason)
  end,
  [6] = function(w, tree)
    w.add(a.hears, 8)
    local range = w.add(a.channels, 1)
    local count = range and range:uint() or 0
    if count > CHANNELS_MAX then
      w.fail(string.format("%d channels: at most %d are allowed", count, CHANNELS_MAX))
    end
    for _ = 1, count do
      if w.over then break end
      add_channel(w)
      add_an(w, tree, false)
      add_suite(w)
      w.add(a.change, 8)
    end
    add_ahead(w)
    return string.format("%d encoding SAs", count)
  end,
}

function agreement.dissector(tvb, pinfo, parent)
  pinfo.cols.protocol = "QLOAK-KA"
  pinfo.cols.info = "Key agreement"
  local tree = parent:add(agreement, tvb())
  local head = walk(tvb, 0, tvb:len(), tree, a_bad)
  local version, kind = head.add(a.version, 1), head.add(a.type, 1)
  local length = head.add(a.length, 2)
  head.add(a.tag, 8)
  head.add(a.counter, 8)
  if head.over then return end
  version, kind, length = version:uint(), kind:uint(), length:uint()
  pinfo.cols.info = "Key agreement: " .. (types[kind] or "unknown type " .. kind)
  if version ~= VERSION then
    return head.fail(string.format("version %d: this dissector knows %d", version, VERSION))
  end
  if not bodies[kind] then return head.fail(string.format("type %d: 1 to 6 are allowed", kind)) end
  if length < HEADER + MAC then
    return head.fail(string.format("length %d: %d at least", length, HEADER + MAC))
  end
  if length > tvb:len() then
    return head.fail(string.format("length %d, but %d octets are here: truncated", length, tvb:len()))
  end
  local body = walk(tvb, HEADER, length - MAC, tree, a_bad)
  local words = bodies[kind](body, tree)
  if body.left() > 0 then
    body.fail(string.format("%d octets more than a %s has", body.left(), types[kind]))
  end
  tree:add(a.mac, tvb(length - MAC, MAC))
  if tvb:len() > length then tree:add(a.padding, tvb(length)) end
  if words then pinfo.cols.info:append(", " .. words) end
end

-- One record; gives its client port and what it is, or nothing when it has not the form of one.
local function add_record(w, tvb, pinfo, tree)
  local head = w.next(4, "the header of a record")
  if not head then return nil end
  local flags, client, length = head(0, 1):uint(), head(1, 1):uint(), head(2, 2):uint()
  local record = tree:add(m.record, head)
  record:add(m.first, head(0, 1))
  record:add(m.last, head(0, 1))
  record:add(m.client, head(1, 1))
  record:add(m.length, head(2, 2))
  if flags % LAST ~= 0 then return w.fail(string.format("flags %02x: only C0, 80, 40 and 00 are allowed", flags)) end
  if client < 1 or client > CLIENTS_MAX then
    return w.fail(string.format("client port %d: 1 to %d are allowed", client, CLIENTS_MAX))
  end
  if length == 0 then return w.fail("a record of no octets") end
  local whole = flags == FIRST + LAST
  if not whole then w.add(m.sequence, 4, record) end
  local octets = w.next(length, "a record's octets")
  if not octets then return nil end
  record:set_len((whole and 4 or 8) + length)
  local what = whole and "frame" or "piece"
  record:append_text(string.format(": client port %d, %s of %d octets", client, what, length))
  if whole then
    -- What is inside speaks of its own addresses and protocol; the list shall show ours.
    local source, destination = pinfo.src, pinfo.dst
    Dissector.get("eth_withoutfcs"):call(octets:tvb(), pinfo, record)
    pinfo.src, pinfo.dst = source, destination
  else
    record:add(m.piece, octets)
  end
  return client
end

function mux.dissector(tvb, pinfo, parent)
  local tree = parent:add(mux, tvb())
  local w = walk(tvb, 0, tvb:len(), tree, m_bad)
  local clients = {}
  while w.left() > 0 and not w.over do
    local rest = tvb(tvb:len() - w.left())
    -- No record begins with client 0: zeros up to the end are fill.
    if rest:bytes() == ByteArray.new(string.rep("00", rest:len())) then
      tree:add(m.fill, rest)
      break
    end
    local client = add_record(w, tvb, pinfo, tree)
    if client then clients[#clients + 1] = client end
  end
  pinfo.cols.protocol = "QLOAK-MUX"
  pinfo.cols.info = string.format("Aggregated: %d records, client ports %s", #clients, table.concat(clients, " "))
end

local ethertype = DissectorTable.get("ethertype")
ethertype:add(0x88b5, agreement)
ethertype:add(0x88b6, mux)
