#pragma once
#include <string>

#include "api/http/http_message.h"
#include "engine/base/status.h"

namespace partita {

// What all that is POSTed to the admin address has in common (admin_ranges.h, admin_tasks.h): answers are
// JSON, an error is {"error":{"code","message"}}, the code as CodeName has it.
//
// Nobody is asked who he is, so: only from this machine, whatever address is listened on; and never what a
// web page had a browser send, which tells an Origin, and cannot send the Content-Type application/json
// unasked.

// Whether its sender may POST at all; looks at no body. False: it is answered.
bool MayPost(const http::HttpRequest& request, http::HttpResponse* response);

// kInvalidArgument: another Content-Type.
Status CheckIsJson(const http::HttpRequest& request);

int HttpStatusOf(Code code);
void AnswerPost(int http_status, std::string json, http::HttpResponse* response);
void AnswerPostError(int http_status, const Status& why, http::HttpResponse* response);

}  // namespace partita
