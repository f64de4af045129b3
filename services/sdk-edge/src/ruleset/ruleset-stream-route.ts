import { sdkRulesetStream } from "@halyard/contracts";
import { deltaEvent } from "../environment/ruleset-json.ts";
import { unknownKey } from "../http/authentication.ts";
import type { Exchange } from "../http/exchange.ts";
import type { EdgeRoute } from "../http/routes.ts";
import type { SdkParts } from "../sdk/sdk-parts.ts";
import { edgeIsStopping, takeSlot } from "../sdk/take-slot.ts";
import type { RulesetHub, RulesetListener } from "../streams/ruleset-hub.ts";
import { readHeldTags, unlessOlder } from "./held-rules.ts";
import type { Rulesets } from "./rulesets.ts";

type Sources = { rulesets: Rulesets; hub: RulesetHub };

/** The route for streams of the rules of all flags. */
export function rulesetStreamRoute(parts: SdkParts, sources: Sources): EdgeRoute {
  return {
    contract: sdkRulesetStream,
    name: "ruleset_stream",
    countsItself: true,
    authenticate: (exchange) => (parts.isDraining() ? edgeIsStopping : parts.byBearer(exchange)),
    respond: (exchange) => respond(parts, sources, exchange),
  };
}

function respond(parts: SdkParts, { rulesets, hub }: Sources, exchange: Exchange): void {
  const { usage } = parts;
  const { key, nowMs, lastEventId, response } = exchange;
  unlessOlder(parts, exchange, {
    held: readHeldTags(lastEventId),
    respond: () =>
      takeSlot(exchange, parts, (open) => {
        const begin = (first: FirstEvent) =>
          open(() => {
            usage?.count(key, "ruleset_stream", nowMs);
            exchange.beginStream();
            hub.open(response, { key, ...first });
          });
        const first = missedEvent(parts, exchange);
        if (first === undefined) prepareFullEvent(parts, { rulesets, exchange, begin });
        else begin(first);
      }),
  });
}

type FirstEvent = Pick<RulesetListener, "firstEvent" | "view">;

/** Returns the event with what the client has missed since an earlier stream; undefined if that is unknown. */
function missedEvent(
  { views, configurationTags }: SdkParts,
  { key: { environmentId }, lastEventId }: Exchange,
): FirstEvent | undefined {
  const [held] = readHeldTags(lastEventId);
  if (held === undefined) return undefined;
  const tag = configurationTags.of(environmentId);
  const view = views.of(environmentId);
  if (tag.hash === held.hash) return { firstEvent: [], view };
  const keys = configurationTags.changedSince(environmentId, held);
  return keys && { firstEvent: [deltaEvent({ environmentId, view, tag, keys })], view };
}

function prepareFullEvent(
  { isKeyLive, now }: SdkParts,
  {
    rulesets,
    exchange,
    begin,
  }: { rulesets: Rulesets; exchange: Exchange; begin: (first: FirstEvent) => void },
): void {
  const { key, response } = exchange;
  async function prepareAndBegin(): Promise<void> {
    const { fullEvent, view } = await rulesets.of(key);
    if (response.destroyed) return;
    // The key may have ended while the rules were prepared.
    if (isKeyLive(key.id, now())) begin({ firstEvent: fullEvent, view });
    else exchange.reject(unknownKey);
  }
  prepareAndBegin().catch((error) => exchange.fail(error));
}
