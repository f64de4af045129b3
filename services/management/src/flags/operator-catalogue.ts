import { listOperators } from "@halyard/contracts";
import { operators } from "@halyard/evaluation";
import { type App, fixedAnswer, registerRoute } from "@halyard/service";
import type { AuthenticateKey } from "../access/principal.ts";

/** A day. Another release may have other words, so the answer is not kept for ever. */
const maxAgeSeconds = 24 * 60 * 60;

/** The operators that conditions can use, which any key may read. It is the same for everybody. */
export function registerOperatorCatalogue(
  app: App,
  { authenticate }: { authenticate: AuthenticateKey },
): void {
  const answerTo = fixedAnswer(
    { operators },
    { "cache-control": `private, max-age=${maxAgeSeconds}`, vary: "Authorization" },
  );
  registerRoute(app, listOperators, {
    authenticate,
    handle: ({ request }) => answerTo(request.headers["if-none-match"]),
  });
}
