#include "api/http/service_stats.h"

#include "api/http/http_date.h"

namespace partita::http {

std::string WriteServiceStats(DateTime now) {
  std::string xml =
      "\xEF\xBB\xBF<?xml version=\"1.0\" encoding=\"utf-8\"?>"
      "<StorageServiceStats><GeoReplication><Status>live</Status><LastSyncTime>";
  AppendHttpDate(&xml, now);
  return xml.append("</LastSyncTime></GeoReplication></StorageServiceStats>");
}

}  // namespace partita::http
