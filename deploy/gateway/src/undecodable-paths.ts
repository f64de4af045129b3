import type { IncomingMessage, Server } from "node:http";
import { isOpenToAllOrigins, isWellEncoded, pathAndQueryOf } from "@halyard/service";

/**
 * Escapes the percent signs of SDK and OFREP paths that cannot be decoded, such as `/ofrep/v1/evaluate/flags/a%zz`. The
 * router would answer 404 to such a path. The edge receives the path instead, checks the key, and reports an unknown
 * flag by the key as the client wrote it.
 */
export function routeUndecodablePaths(server: Server): void {
  server.prependListener("request", (request: IncomingMessage) => {
    const target = pathAndQueryOf(request.url ?? "");
    const [path = ""] = target.split("?", 1);
    if (!isOpenToAllOrigins(path) || isWellEncoded(path)) return;
    request.url = path.replaceAll("%", "%25") + target.slice(path.length);
  });
}
