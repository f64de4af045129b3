import { sdkRuleset } from "@halyard/contracts";
import { etagOf } from "../environment/ruleset-json.ts";
import { unknownKey } from "../http/authentication.ts";
import type { Exchange } from "../http/exchange.ts";
import type { EdgeRoute } from "../http/routes.ts";
import type { SdkParts } from "../sdk/sdk-parts.ts";
import { chooseCoding } from "./content-coding.ts";
import { readHeldTags, unlessOlder } from "./held-rules.ts";
import type { Rulesets, SharedBytes } from "./rulesets.ts";

/** The route for the rules of all flags. SDKs evaluate them in the application. */
export function rulesetRoute(parts: SdkParts, rulesets: Rulesets): EdgeRoute {
  return {
    contract: sdkRuleset,
    name: "ruleset",
    countsItself: true,
    authenticate: parts.byBearer,
    respond: (exchange) => respond(parts, rulesets, exchange),
  };
}

function respond(parts: SdkParts, rulesets: Rulesets, exchange: Exchange): void {
  const { key, headers, nowMs } = exchange;
  const ifNoneMatch = headers["if-none-match"];
  const held = readHeldTags(ifNoneMatch);
  unlessOlder(parts, exchange, {
    held,
    respond() {
      parts.usage?.count(key, "ruleset", nowMs);
      const present = parts.configurationTags.of(key.environmentId);
      // Edges may name the same rules with different times, because they remove deletions at different times.
      const isHeld = held.some(({ hash }) => hash === present.hash);
      if (isHeld || ifNoneMatch?.trim() === "*") exchange.answerNotModified(etagOf(present));
      else sendRules(parts, rulesets, exchange);
    },
  });
}

/** Minimum length of a compressed body. A shorter one fits in one packet. */
const minCompressedBytes = 1_024;

function sendRules({ isKeyLive, now }: SdkParts, rulesets: Rulesets, exchange: Exchange): void {
  const { key, headers, response } = exchange;
  const send = (etag: string, bytes: SharedBytes, coding?: string) => {
    if (response.destroyed) return;
    // The key may have ended while the rules were prepared.
    if (isKeyLive(key.id, now())) exchange.answerBytes(etag, bytes, coding);
    else exchange.reject(unknownKey);
  };
  async function prepareAndSend(): Promise<void> {
    const ruleset = await rulesets.of(key);
    const { body, etag } = ruleset;
    const coding = chooseCoding(headers["accept-encoding"]?.toString());
    if (coding === undefined || body.length < minCompressedBytes) send(etag, body);
    else send(etag, await ruleset.compressed(coding), coding);
  }
  prepareAndSend().catch((error) => exchange.fail(error));
}
