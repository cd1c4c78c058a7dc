-- The requests that wrk sends, of the kind that LOAD_KIND names. Environment:
--   LOAD_KIND      insert, egt, point, range, filter, scan
--   LOAD_BASE      "http://HOST:PORT": what stands before LOAD_PATH in the parts of a transaction
--   LOAD_PATH      "/ACCOUNT/TABLE", where the endpoint ends
--   LOAD_BATCH     "/ACCOUNT/$batch"
--   LOAD_SAS       the query of a token
--   LOAD_ROWS      entities in the table: LOAD_ROWS / 1000 partitions p000000... of rows r000...r999
--   LOAD_RUN       distinguishes runs: insert and egt write to partitions of their own
local kind, path, sas = os.getenv("LOAD_KIND"), os.getenv("LOAD_PATH"), os.getenv("LOAD_SAS")
local rows, run = tonumber(os.getenv("LOAD_ROWS")), os.getenv("LOAD_RUN")
local partitions = math.max(1, math.floor(rows / 1000))
local base = os.getenv("LOAD_BASE")
local threads = {}
local headers = {["x-ms-version"] = "2019-02-02", ["Accept"] = "application/json;odata=nometadata",
                 ["Content-Type"] = "application/json"}
-- Some 900 bytes: with keys and names an entity of 1 KiB.
local filler = string.rep("The quick brown fox jumps over the lazy dog 0123456789 ", 16)

function setup(thread)
  thread:set("number", #threads)
  threads[#threads + 1] = thread
end

local count = 0
function init(args)
  math.randomseed(number * 7919 + tonumber(run))
  quiet = {}
  for name, value in pairs(headers) do quiet[name] = value end
  quiet["Prefer"] = "return-no-content"
end

local function entity(partition, row)
  return string.format('{"PartitionKey":"%s","RowKey":"%s","Note":"%s","Count":%d,"Total":%d.5}',
                       partition, row, filler, count, count)
end

local makers = {}

function makers.insert()
  -- Sixteen partitions a thread, so that more than one shard has work.
  local partition = string.format("w%s-%d-%d", run, number, count % 16)
  return wrk.format("POST", path .. "?" .. sas, quiet, entity(partition, string.format("%09d", count)))
end

function makers.egt()
  local partition = string.format("e%s-%d-%d", run, number, count)
  local parts = {"--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n"}
  for i = 0, 99 do
    parts[#parts + 1] = "--changeset_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n" ..
      "POST " .. base .. path .. " HTTP/1.1\r\nContent-Type: application/json\r\nAccept: application/json;odata=nometadata\r\n" ..
      "Prefer: return-no-content\r\n\r\n" .. entity(partition, string.format("%03d", i)) .. "\r\n"
  end
  parts[#parts + 1] = "--changeset_1--\r\n--batch_1--\r\n"
  return wrk.format("POST", os.getenv("LOAD_BATCH") .. "?" .. sas,
                    {["x-ms-version"] = "2019-02-02", ["Accept"] = "application/json",
                     ["Content-Type"] = "multipart/mixed; boundary=batch_1"}, table.concat(parts))
end

function makers.point()
  local at = string.format("(PartitionKey='p%06d',RowKey='r%03d')?", math.random(0, partitions - 1), math.random(0, 999))
  return wrk.format("GET", path .. at .. sas, headers)
end

function makers.range()
  local first = math.random(0, 899)
  local filter = string.format("PartitionKey%%20eq%%20'p%06d'%%20and%%20RowKey%%20ge%%20'r%03d'%%20and%%20RowKey%%20lt%%20'r%03d'",
                               math.random(0, partitions - 1), first, first + 100)
  return wrk.format("GET", path .. "()?$filter=" .. filter .. "&" .. sas, headers)
end

function makers.filter()
  -- All 1,000 entities of a partition are looked at, ten are answered.
  local least = math.random(0, 98) * 10
  local filter = string.format("PartitionKey%%20eq%%20'p%06d'%%20and%%20Count%%20ge%%20%d%%20and%%20Count%%20lt%%20%d",
                               math.random(0, partitions - 1), least, least + 10)
  return wrk.format("GET", path .. "()?$filter=" .. filter .. "&" .. sas, headers)
end

function makers.scan()
  -- The condition on RowKey keeps zone maps from sparing any of it.
  local filter = string.format("Count%%20eq%%20%d%%20or%%20RowKey%%20eq%%20'none'", math.random(0, 999))
  return wrk.format("GET", path .. "()?$filter=" .. filter .. "&" .. sas, headers)
end

local make = makers[kind]
function request()
  count = count + 1
  return make()
end

-- A transaction that was refused has the status 202 and one part, which says so. Of other kinds wrk counts the refusals,
-- by the status of 400 and above; it looks at answers only where there is such a function.
refused = 0
if kind == "egt" then
  function response(status, headers, body)
    if status < 400 and body:match("HTTP/1.1 (%d)") ~= "2" then refused = refused + 1 end
  end
end

function done(summary, latency)
  local errors = summary.errors.status + summary.errors.read + summary.errors.write + summary.errors.connect
  for _, thread in ipairs(threads) do errors = errors + thread:get("refused") end
  io.write(string.format("RESULT requests=%d seconds=%.3f errors=%d timeouts=%d p50_us=%d p99_us=%d\n",
                         summary.requests, summary.duration / 1e6, errors, summary.errors.timeout,
                         latency:percentile(50), latency:percentile(99)))
end
