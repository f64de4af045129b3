import { cacheHeadersOf, listOperators } from "@halyard/contracts";
import { operators } from "@halyard/evaluation";
import { type App, fixedAnswer, registerRoute } from "@halyard/service";
import type { AuthenticateKey } from "../access/principal.ts";

/** The operators that conditions can use, which any key may read. It is the same for everybody. */
export function registerOperatorCatalogue(
  app: App,
  { authenticate }: { authenticate: AuthenticateKey },
): void {
  const answerTo = fixedAnswer({ operators }, { ...cacheHeadersOf(listOperators) });
  registerRoute(app, listOperators, {
    authenticate,
    handle: ({ request }) => answerTo(request.headers["if-none-match"]),
  });
}
