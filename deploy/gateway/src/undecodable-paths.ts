import type { IncomingMessage, Server } from "node:http";
import { isOpenToAllOrigins, isWellEncoded, pathAndQueryOf } from "@halyard/http";

/**
 * Escapes the percent signs of SDK and OFREP paths that cannot be decoded, such as `/ofrep/v1/evaluate/flags/a%zz`. The
 * router would respond with 404. Instead, the edge receives the path, checks the API key, and reports an unknown flag
 * with the key that the client wrote.
 */
export function routeUndecodablePaths(server: Server): void {
  server.prependListener("request", (request: IncomingMessage) => {
    const target = pathAndQueryOf(request.url ?? "");
    const [path = ""] = target.split("?", 1);
    if (!isOpenToAllOrigins(path) || isWellEncoded(path)) return;
    request.url = path.replaceAll("%", "%25") + target.slice(path.length);
  });
}
