import { sdkList } from "@halyard/contracts";
import { createProblem } from "@halyard/http";
import { existingChunk } from "../../snapshot/snapshot.ts";
import { awaitState } from "../await-state.ts";
import type { EdgeParts } from "../edge-parts.ts";
import type { EdgeRoute } from "../edge-route.ts";

/**
 * The route for chunks of the lists of audiences. Its requests do not count. A client can have the rules of another edge,
 * so a request for a chunk that has not arrived yet waits for it.
 */
export function listRoute(parts: EdgeParts): EdgeRoute {
  return {
    contract: sdkList,
    name: "list",
    isFree: true,
    authenticate: parts.byBearer,
    respond(exchange) {
      const { sha256 = "" } = exchange.params;
      const find = () => findChunk(parts, exchange.key.environmentId, sha256);
      const respond = () => {
        const chunk = find();
        if (chunk === undefined) exchange.reject(noSuchChunk);
        else exchange.answerBinary(chunk);
      };
      if (!sha256Form.test(sha256)) respond();
      else awaitState(parts, exchange, { isKnown: () => find() !== undefined, respond });
    },
  };
}

const sha256Form = /^[0-9a-f]{64}$/;

/** Returns a chunk of an audience that flags of the environment use, also one that a change has just replaced. */
function findChunk(
  { views, holder: { snapshot }, replacedChunks }: EdgeParts,
  environmentId: string,
  sha256: string,
): Buffer | undefined {
  const { links } = views.of(environmentId);
  const linked = links.chunk(sha256);
  if (linked !== undefined || snapshot === undefined) return linked;
  for (const { entry } of links.audiences.values()) {
    const id = entry.audience_id;
    const chunk = existingChunk(snapshot, id, sha256)?.bytes ?? replacedChunks.find(id, sha256);
    if (chunk !== undefined) return chunk;
  }
  return undefined;
}

const noSuchChunk = createProblem(
  "NOT_FOUND_001",
  "No flag of this environment uses a list with this chunk.",
);
