#include "api/http/http_connection.h"

#include <algorithm>
#include <utility>

#include "engine/base/clock.h"
#include "engine/base/executor.h"

namespace partita::http {

namespace {

constexpr uint64_t kFreeBufferBytes = 16 << 10;  // Each connection's share that is not counted.
constexpr size_t kBodyPadding = 64;              // HttpRequest::body
// How long a body waits for room among the buffers, and how often it asks.
constexpr uint64_t kRoomWaitNanos = 10'000'000'000;
constexpr uint64_t kRoomAskNanos = 5'000'000;
// Gathered answers are sent when they are so many bytes; a body of that size is not copied.
constexpr size_t kGatherBytes = HttpResponse::kLargeBody;
// How long and how much is read after the last answer (see the class).
constexpr uint32_t kLingerMillis = 2'000;
constexpr uint64_t kLingerBytes = 16 << 20;

}  // namespace

HttpConnection::HttpConnection(HttpServerCore& core, ConnectionHandle connection)
    : core_(core),
      lane_(core.LaneOfThisWorker()),
      connection_(std::move(connection)),
      share_(&core.buffers),
      early_(&core.budgets.early) {
  core_.open.fetch_add(1, std::memory_order_relaxed);
}

HttpConnection::~HttpConnection() {
  CountBytes();
  if (buffers_ != nullptr) lane_.GiveBack(std::move(buffers_));
  core_.open.fetch_sub(1, std::memory_order_relaxed);
}

Task<void> HttpConnection::Run() {
  connection_->SetDeadline(core_.options.timeouts.header_ms);
  if (!co_await Open()) co_return;
  After after = After::kGoOn;
  bool is_idle = false;  // It has been answered before.
  while (after == After::kGoOn) {
    Status readable;
    if (tls_.has_value()) {
      readable = co_await ReadableTls();
    } else {
      readable = co_await connection_->Readable();
    }
    if (!readable.ok()) {
      // Between requests it was only left alone, as pooled ones are.
      if (readable.code() == Code::kDeadlineExceeded && !is_idle) lane_.timeouts.Add(1);
      break;
    }
    buffers_ = lane_.Borrow();
    after = co_await ServeBurst();
    CountBytes();
    if (after != After::kGoOn) break;
    lane_.GiveBack(std::move(buffers_));
    (void)ChargeBuffers();
    connection_->SetDeadline(core_.options.timeouts.idle_ms);
    is_idle = true;
  }
  co_await End(after);
}

// Lets the connection in, or says why not.
Task<bool> HttpConnection::Open() {
  const uint64_t open = core_.open.load(std::memory_order_relaxed);
  if (open > core_.options.connections_max) {
    lane_.refused.Add(1);
    if (core_.options.tls != nullptr ||
        open > uint64_t{core_.options.connections_max} + core_.options.refused_max)
      co_return false;
    buffers_ = lane_.Borrow();
    const After after = co_await RefuseRequest(503, "There are too many connections.");
    co_await End(after);
    co_return false;
  }
  if (core_.options.tls == nullptr) co_return true;
  tls_.emplace(*connection_, core_.options.tls->Current());
  Status shaken = co_await tls_->Handshake();
  if (!shaken.ok()) lane_.tls_failures.Add(1);
  co_return shaken.ok();
}

// Answers what comes until nothing is left over.
Task<HttpConnection::After> HttpConnection::ServeBurst() {
  RequestBuffers& buffers = *buffers_;
  begin_ = 0;
  head_deadline_ = false;
  body_deadline_ns_ = 0;
  arrived_ticks_ = 0;
  admitted_ = false;
  HttpParser::Step step = HttpParser::Step::kNeedMore;
  while (true) {
    After after = After::kGoOn;
    switch (step) {
      case HttpParser::Step::kRequest:
        after = co_await Answer();
        // A pipeline may hold hundreds, and all that is between two of them may be work: others get their
        // turn.
        if (after == After::kGoOn && begin_ < buffers.in.size()) co_await YieldIfDue();
        break;
      case HttpParser::Step::kRefused:
        lane_.framing_errors.Add(1);
        co_return co_await RefuseUnreadable();
      case HttpParser::Step::kContinue:
        after = co_await AdmitBody(/*asks_first=*/true);
        if (after != After::kGoOn) break;
        buffers.out.append("HTTP/1.1 100 Continue\r\n\r\n");
        after = co_await WaitForMore();
        break;
      case HttpParser::Step::kNeedMore:
        if (buffers.parser.awaits_body() && !admitted_) {
          after = co_await AdmitBody(/*asks_first=*/false);
          if (after != After::kGoOn) break;
        }
        after = co_await WaitForMore();
        break;
    }
    if (after != After::kGoOn) co_return after;
    step = HttpParser::Step::kNeedMore;
    if (begin_ < buffers.in.size()) step = buffers.parser.Parse(std::string_view(buffers.in).substr(begin_));
    // Empty lines alone, as some send behind a body, begin no request: nobody waits for an answer to them.
    if (step == HttpParser::Step::kNeedMore &&
        begin_ + buffers.parser.empty_line_bytes() == buffers.in.size()) {
      buffers.in.clear();
      begin_ = 0;
      DropAnswered();
      co_return co_await Flush();
    }
  }
}

Task<HttpConnection::After> HttpConnection::Answer() {
  RequestBuffers& buffers = *buffers_;
  HttpRequest& request = buffers.parser.request();
  FillInRequest(&request);
  lane_.requests.Add(1);
  buffers.response.Clear();
  Task<void> handling = core_.handler.Handle(request, &buffers.response);
  handling.Start();
  After sent = After::kGoOn;
  if (!handling.done()) {
    // Whom a handler works for may be here, with all that he sent.
    admitted_ = true;
    (void)ChargeBuffers();
    // What was answered before does not wait for this one.
    if (!buffers.out.empty()) sent = co_await Flush();
  }
  if (!handling.done()) {
    // A handler goes on to its end, whether or not anybody takes its answer.
    connection_->SetDeadline(sent == After::kGoOn ? buffers.response.due_ms : 0);
    const bool in_time = co_await connection_->InTime(handling);
    if (!in_time) co_return co_await AnswerLate(std::move(handling));
  }
  if (sent != After::kGoOn) co_return sent;

  buffers.response.omit_body = buffers.response.omit_body || request.method == Method::kHead;
  const bool keep_alive = buffers.parser.keep_alive() && !buffers.response.close &&
                          !core_.stopping.load(std::memory_order_relaxed);
  const bool unread = request.body_too_large;
  admitted_ = admitted_ || buffers.response.body.size() > kGatherBytes;
  GatherAnswer(keep_alive);
  After after = After::kGoOn;
  if (IsLargeAnswer()) after = co_await SendLargeAnswer();
  begin_ += buffers.parser.consumed();
  buffers.parser.Reset();
  head_deadline_ = false;
  body_deadline_ns_ = 0;
  arrived_ticks_ = 0;
  admitted_ = false;
  if (after != After::kGoOn) co_return after;
  // Sent: the next request may be long in coming.
  if (buffers.response.body.capacity() > kGatherBytes) buffers.response.Clear();
  (void)ChargeBuffers();
  const bool has_room = buffers.out.size() <= kFreeBufferBytes || early_.TrySet(EarlyBytesHeld());
  if (keep_alive && has_room && buffers.out.size() < kGatherBytes) co_return After::kGoOn;
  // The peer may take its time for these answers, and what it asks besides would be held as long.
  if (keep_alive && begin_ < buffers.in.size()) {
    DropAnswered();
    if (!MayHoldEarly()) co_return co_await RefuseEarly();
  }
  after = co_await Flush();
  if (after != After::kGoOn || keep_alive) co_return after;
  co_return unread || begin_ < buffers.in.size() ? After::kLinger : After::kClose;
}

// The client is told that the handler takes too long, and no more comes on this connection. What was begun
// cannot be called back: it goes on to its end, with the request and the buffers that it uses.
Task<HttpConnection::After> HttpConnection::AnswerLate(Task<void> handling) {
  HttpRequest& request = buffers_->parser.request();
  HttpResponse late;
  core_.handler.Refuse(500, "The operation could not be completed within the permitted time.", request,
                       &late);
  request.answered = true;  // From here on; the refusal is logged and counted.
  late.omit_body = request.method == Method::kHead;
  AppendHead(late, /*keep_alive=*/false);
  if (ResponseWriter::SendsBody(late)) buffers_->out.append(late.body);
  const After flushed = co_await Flush();
  connection_->SetDeadline(0);
  (void)co_await connection_->InTime(handling);
  co_return flushed == After::kGoOn ? After::kLinger : flushed;
}

// Before the first wait for a body: whether its sender may send it, and memory for all of it.
Task<HttpConnection::After> HttpConnection::AdmitBody(bool asks_first) {
  RequestBuffers& buffers = *buffers_;
  HttpRequest& request = buffers.parser.request();
  FillInRequest(&request);
  const size_t told = buffers.parser.told_body_bytes();
  const bool large = told > kFreeBufferBytes || buffers.parser.comes_in_chunks();
  // Where too much of what nobody was asked about is held, its senders are asked for, too.
  if (!large && !asks_first && MayHoldEarly()) co_return After::kGoOn;
  buffers.response.Clear();
  if (core_.handler.RefuseBeforeBody(request, &buffers.response)) {
    lane_.requests.Add(1);
    buffers.response.omit_body = buffers.response.omit_body || request.method == Method::kHead;
    buffers.parser.Reset();
    GatherAnswer(/*keep_alive=*/false);
    co_return co_await FlushLast();
  }
  admitted_ = true;
  if (told <= kFreeBufferBytes) {
    (void)ChargeBuffers();
    co_return After::kGoOn;
  }
  const After flushed = co_await Flush();  // What was answered before does not wait for room.
  if (flushed != After::kGoOn) co_return flushed;
  if (!co_await WaitForRoom()) {
    co_return co_await RefuseRequest(503, "The server holds too many large requests.", &request);
  }
  // In one piece of the right size: growing by doubling would hold three times as much for moments.
  std::string whole;
  whole.reserve(buffers.parser.head_bytes() + told + kBodyPadding);
  whole.assign(buffers.in, begin_);
  buffers.in.swap(whole);
  begin_ = 0;
  co_return After::kGoOn;
}

// Until the body, as it was told or has come in chunks, is counted; false when the others hold too much for
// too long. Those before it wait no longer than it does, so its turn comes in time.
Task<bool> HttpConnection::WaitForRoom() {
  Clock& clock = core_.runtime.clock();
  const uint64_t end = clock.MonotonicNanos() + kRoomWaitNanos;
  const uint64_t wanted = LargeBytesHeld();
  early_.Set(0);
  // Who has room for a part goes on by itself: what it holds comes back no sooner than it ends.
  if (share_.bytes() > 0 && share_.TrySet(wanted)) co_return true;
  AsyncMutex& turn = core_.budgets.turn;
  if (const AsyncMutex::Guard first = turn.TryLock(); first.held() && share_.TrySet(wanted)) co_return true;
  // Were it counted with the others, those who wait could keep each other waiting.
  BufferShare waiting(&core_.budgets.waiting);
  const uint64_t has_come = buffers_->in.capacity() + buffers_->parser.memory();
  if (wanted > core_.buffers.bytes_max() || !waiting.TrySet(has_come)) co_return false;
  share_.Set(0);
  const AsyncMutex::Guard first = co_await turn.Lock();
  while (!share_.TrySet(wanted)) {
    const bool over = clock.MonotonicNanos() >= end || connection_->gone().load(std::memory_order_relaxed) ||
                      core_.stopping.load(std::memory_order_relaxed);
    if (over) co_return false;
    co_await SleepFor(kRoomAskNanos);
  }
  co_return true;
}

void HttpConnection::FillInRequest(HttpRequest* request) {
  request->secure = tls_.has_value();
  request->remote_address = connection_->peer_host();
  request->remote_is_local = connection_->peer_is_local();
  // Once: a token that was good for letting the body in is good for what it says.
  if (arrived_ticks_ == 0) arrived_ticks_ = core_.runtime.clock().WallTicks();
  request->arrived_ticks = arrived_ticks_;
  // Who ends its half before its request is looked at does so by habit, and reads the answer; later it has
  // most likely gone.
  const bool half_closes = connection_->hung_up().load(std::memory_order_relaxed);
  request->peer_gone = half_closes ? &connection_->gone() : &connection_->hung_up();
  request->answered = false;
  request->buffers = &core_.buffers;
}

// Puts the answer behind those gathered before; a large body is left for SendLargeAnswer. One that does not
// fit is refused where nothing but reading was done for it: who is told so asks again, and a write must not
// have happened then (spec 17.2). The answer to a write is about as large as the request that was let in.
void HttpConnection::GatherAnswer(bool keep_alive) {
  RequestBuffers& buffers = *buffers_;
  HttpResponse& response = buffers.response;
  // A handler that counted has been told already, and has made of it what it could.
  const bool counted = response.body_share.bytes() > 0;
  const Method method = buffers.parser.request().method;
  const bool may_refuse = !counted && (method == Method::kGet || method == Method::kHead);
  if (response.body.size() > kGatherBytes && !ChargeBuffers() && may_refuse) {
    response.Clear();
    core_.handler.Refuse(503, "The server holds too many large answers.", buffers.parser.request(),
                         &response);
    response.omit_body = method == Method::kHead;
  }
  AppendHead(response, keep_alive);
  if (ResponseWriter::SendsBody(response) && !IsLargeAnswer()) buffers.out.append(response.body);
}

void HttpConnection::AppendHead(const HttpResponse& response, bool keep_alive) {
  const HttpParser& parser = buffers_->parser;
  ResponseWriter::Framing framing;
  framing.keep_alive = keep_alive;
  framing.http_1_0 = parser.awaits_body() && parser.is_http_1_0();
  framing.wall_ticks = core_.runtime.clock().WallTicks();
  lane_.writer().AppendHead(response, framing, &buffers_->out);
}

bool HttpConnection::IsLargeAnswer() const {
  const HttpResponse& response = buffers_->response;
  return response.body.size() > kGatherBytes && ResponseWriter::SendsBody(response);
}

Task<HttpConnection::After> HttpConnection::SendLargeAnswer() {
  RequestBuffers& buffers = *buffers_;
  SetSendDeadline(buffers.out.size() + buffers.response.body.size());
  Status sent;
  if (tls_.has_value()) {
    sent = co_await SendTls(buffers.out);
    if (sent.ok()) sent = co_await SendTls(buffers.response.body);
  } else {
    sent = co_await connection_->Send(buffers.out, Connection::More::kYes);
    if (sent.ok()) sent = co_await connection_->Send(buffers.response.body);
  }
  buffers.out.clear();
  if (sent.code() == Code::kDeadlineExceeded) lane_.timeouts.Add(1);
  co_return sent.ok() ? After::kGoOn : After::kDrop;
}

// Before the end. Nothing more is made of what the peer sent, and it may take its time for the answer.
Task<HttpConnection::After> HttpConnection::FlushLast() {
  std::string().swap(buffers_->in);
  begin_ = 0;
  const After flushed = co_await Flush();
  co_return flushed == After::kGoOn ? After::kLinger : flushed;
}

Task<HttpConnection::After> HttpConnection::Flush() {
  if (buffers_->out.empty()) co_return After::kGoOn;
  SetSendDeadline(buffers_->out.size());
  Status sent;
  if (tls_.has_value()) {
    sent = co_await SendTls(buffers_->out);
  } else {
    sent = co_await connection_->Send(buffers_->out);
  }
  buffers_->out.clear();
  if (sent.code() == Code::kDeadlineExceeded) lane_.timeouts.Add(1);
  co_return sent.ok() ? After::kGoOn : After::kDrop;
}

void HttpConnection::SetSendDeadline(size_t bytes) {
  constexpr uint64_t kMillisPerSecond = 1'000;
  const HttpTimeouts& timeouts = core_.options.timeouts;
  connection_->SetDeadline(timeouts.transfer_ms);
  connection_->LimitSends(timeouts.transfer_ms + bytes * kMillisPerSecond / timeouts.answer_bytes_per_second);
}

// The deadline for more of a body; false when its time is over.
bool HttpConnection::SetBodyDeadline() {
  constexpr uint64_t kNanosPerMilli = 1'000'000;
  const HttpTimeouts& timeouts = core_.options.timeouts;
  const uint64_t now = core_.runtime.clock().MonotonicNanos();
  if (body_deadline_ns_ == 0) body_deadline_ns_ = now + timeouts.body_ms * kNanosPerMilli;
  if (now >= body_deadline_ns_) return false;
  const uint64_t left_ms = (body_deadline_ns_ - now) / kNanosPerMilli + 1;
  connection_->SetDeadline(static_cast<uint32_t>(std::min<uint64_t>(left_ms, timeouts.transfer_ms)));
  return true;
}

// Receives more of the request at begin_.
Task<HttpConnection::After> HttpConnection::WaitForMore() {
  RequestBuffers& buffers = *buffers_;
  DropAnswered();
  buffers.parser.DropJoined(&buffers.in);
  if (!admitted_ && !MayHoldEarly()) co_return co_await RefuseEarly();
  if (!buffers.out.empty()) {
    const After flushed = co_await Flush();
    if (flushed != After::kGoOn) co_return flushed;
  }
  if (buffers.parser.awaits_body()) {
    if (!SetBodyDeadline()) co_return co_await RefuseSlow();
  } else if (!head_deadline_) {
    connection_->SetDeadline(core_.options.timeouts.header_ms);
    head_deadline_ = true;
  }
  Result<size_t> received = size_t{0};
  if (tls_.has_value()) {
    received = co_await ReceiveTls();
  } else {
    received = co_await connection_->Receive(&buffers.in);
  }
  if (!received.ok()) {
    if (received.code() != Code::kDeadlineExceeded) co_return After::kDrop;
    co_return co_await RefuseSlow();
  }
  if (*received == 0) co_return After::kDrop;  // Half a request is none.
  buffers.in.reserve(buffers.in.size() + kBodyPadding);
  // What nobody was asked about is counted before it has to wait, when more may be known of it.
  if (!admitted_) co_return After::kGoOn;
  // A body whose size was told has its room. Chunks are counted as they come, and wait as it did; few are
  // refused as little as a small body whose size was told (AdmitBody).
  if (buffers.parser.joined_bytes() <= kFreeBufferBytes) {
    (void)ChargeBuffers();
  } else if (!co_await WaitForRoom()) {
    co_return co_await RefuseRequest(503, "The server holds too many large requests.");
  }
  co_return After::kGoOn;
}

Task<HttpConnection::After> HttpConnection::RefuseEarly() {
  co_return co_await RefuseRequest(503, "The server holds too many unfinished requests.");
}

Task<HttpConnection::After> HttpConnection::RefuseUnreadable() {
  HttpParser& parser = buffers_->parser;
  const HttpParser::Refusal refusal = parser.refusal();
  if (!refusal.knows_head) co_return co_await RefuseRequest(refusal.status, refusal.reason);
  FillInRequest(&parser.request());
  co_return co_await RefuseRequest(refusal.status, refusal.reason, &parser.request());
}

Task<HttpConnection::After> HttpConnection::RefuseSlow() {
  lane_.timeouts.Add(1);
  co_return co_await RefuseRequest(408, "The request did not come in time.");
}

Task<HttpConnection::After> HttpConnection::RefuseRequest(int status, std::string_view reason,
                                                          const HttpRequest* request) {
  RequestBuffers& buffers = *buffers_;
  HttpRequest unknown;
  FillInRequest(&unknown);
  const HttpRequest& refused = request != nullptr ? *request : unknown;
  buffers.response.Clear();
  core_.handler.Refuse(status, reason, refused, &buffers.response);
  buffers.response.omit_body = refused.method == Method::kHead;
  buffers.parser.Reset();
  GatherAnswer(/*keep_alive=*/false);
  co_return co_await FlushLast();
}

Task<void> HttpConnection::End(After after) {
  if (after == After::kDrop) co_return;
  if (tls_.has_value()) {
    connection_->SetDeadline(kLingerMillis);
    co_await tls_->EndSending();
  } else {
    connection_->EndSending();
  }
  if (after != After::kLinger) co_return;
  connection_->SetDeadline(kLingerMillis);
  lane_.GiveBack(std::move(buffers_));
  (void)ChargeBuffers();
  std::string unwanted;
  for (uint64_t total = 0; total < kLingerBytes && !core_.stopping.load(std::memory_order_relaxed);) {
    // Idle, so that a stop does not wait for it.
    Status readable = co_await connection_->Readable();
    if (!readable.ok()) co_return;
    Result<size_t> received = co_await connection_->Receive(&unwanted);
    if (!received.ok() || *received == 0) co_return;
    total += *received;
    unwanted.clear();
    connection_->Recycle(&unwanted);  // A burst may have been large, and the next may be long in coming.
  }
}

Task<Status> HttpConnection::ReadableTls() { co_return co_await tls_->Readable(); }

Task<Result<size_t>> HttpConnection::ReceiveTls() { co_return co_await tls_->Receive(&buffers_->in); }

Task<Status> HttpConnection::SendTls(std::string_view bytes) { co_return co_await tls_->Send(bytes); }

// What this connection holds of core_.buffers beyond its free share, and the handler has not counted. Of a
// body both the memory that it will fill and what the handler makes of it, which is as large, and makes way
// for the answer. Of a request that nobody has let in, the answer alone.
uint64_t HttpConnection::LargeBytesHeld() const {
  if (buffers_ == nullptr) return 0;
  const HttpParser& parser = buffers_->parser;
  const uint64_t told = parser.told_body_bytes();
  uint64_t held = buffers_->response.body.capacity();
  if (admitted_) {
    held = std::max<uint64_t>({told, parser.joined_bytes(), held});
    held += std::max<uint64_t>(buffers_->in.capacity(), told) + parser.memory() + buffers_->out.capacity();
  }
  if (tls_.has_value() && buffers_->response.body.size() > kGatherBytes) held += TlsStream::kSendMemory;
  const uint64_t counted = kFreeBufferBytes + buffers_->response.body_share.bytes();
  return held - std::min(held, counted);
}

// What it holds of ServerBudgets::early beyond its free share.
uint64_t HttpConnection::EarlyBytesHeld() const {
  if (admitted_ || buffers_ == nullptr) return 0;
  const uint64_t held = buffers_->in.capacity() + buffers_->parser.memory() + buffers_->out.capacity();
  return held - std::min(held, kFreeBufferBytes);
}

// Counts what this connection's buffers hold now. False when it grew although all hold too much.
bool HttpConnection::ChargeBuffers() {
  if (admitted_ || buffers_ == nullptr) early_.Set(0);
  return share_.Set(LargeBytesHeld());
}

// Whether what came before anybody was asked may be held while this waits; counts it if so. What does not go
// beyond the free share always may.
bool HttpConnection::MayHoldEarly() {
  return early_.TrySet(EarlyBytesHeld()) || buffers_->in.capacity() <= kFreeBufferBytes;
}

// A burst may have been large, and what is behind the answered part of it long in coming.
void HttpConnection::DropAnswered() {
  std::string& in = buffers_->in;
  if (begin_ > 0) in.erase(0, std::exchange(begin_, 0));
  if (admitted_ || in.capacity() <= kFreeBufferBytes || in.size() >= in.capacity() / 2) return;
  std::string rest;
  rest.reserve(in.size() + kBodyPadding);
  rest.assign(in);
  in.swap(rest);
}

void HttpConnection::CountBytes() {
  lane_.bytes_received.Add(connection_->bytes_received() - received_);
  lane_.bytes_sent.Add(connection_->bytes_sent() - sent_);
  received_ = connection_->bytes_received();
  sent_ = connection_->bytes_sent();
}

}  // namespace partita::http
