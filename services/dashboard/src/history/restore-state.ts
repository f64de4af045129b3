import { type Api, unwrap } from "../api/client.ts";
import { isEditConflict } from "../api/problem.ts";
import type { FlagInPage } from "../flags/flag-page.tsx";
import { ifVersion, statePathOf, stateRoute } from "../flags/state-route.ts";
import type { State } from "../state/flag-state.ts";
import { isSameState, requestFor } from "../state/state.ts";

/**
 * Rolls back a version of the state. The idempotency key names that version, so that a repetition after a lost response
 * returns the first result instead of a conflict with oneself.
 */
export async function rollBack(api: Api, place: FlagInPage, version: number): Promise<void> {
  const header = {
    ...ifVersion(version),
    "Idempotency-Key": `rollback-${place.flag.id}-${place.environment.id}-${version}`,
  };
  const params = { path: statePathOf(place), header };
  await unwrap(api.POST(`${stateRoute}/rollback`, { params }));
}

/**
 * Saves a state upon a version. A repetition after a lost response is rejected, because the first attempt made a newer
 * version. It succeeds if that version has the wanted state.
 */
export async function saveState(
  api: Api,
  place: FlagInPage,
  { version, state }: { version: number; state: State },
): Promise<void> {
  const path = statePathOf(place);
  try {
    const params = { path, header: ifVersion(version) };
    await unwrap(api.PATCH(stateRoute, { params, body: requestFor(state) }));
  } catch (error) {
    if (!isEditConflict(error)) throw error;
    const current = await unwrap(api.GET(stateRoute, { params: { path } }));
    if (!isSameState(current, state)) throw error;
  }
}
