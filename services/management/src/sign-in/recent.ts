import { recentSignInMinutes } from "@halyard/contracts";
import { createProblem } from "@halyard/http";
import type { LiveSession } from "@halyard/people";

/** Returns whether the sign-in or the confirmation is recent enough for a change of who may sign in. */
export const isRecent = ({ confirmedAtMs }: Pick<LiveSession, "confirmedAtMs">, now: Date) =>
  now.getTime() - confirmedAtMs <= recentSignInMinutes * 60_000;

export const notRecent = createProblem(
  "AUTH_003",
  `Your sign-in is older than ${recentSignInMinutes} minutes. Confirm it, and repeat the request.`,
);
