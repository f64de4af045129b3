import { useEffect, useRef } from "react";
import { isPerson, readRoles, tokensOf } from "./person.ts";
import type { KeySession, Tab } from "./session.tsx";

/**
 * Reads the roles of the signed-in person and the end of the session again when the window gets the focus, and when the
 * server rejects a request because of a missing role, which `rejections` counts. New projects appear, and those without a
 * role go.
 */
export function useFreshRoles(tab: Tab, rejections: number): void {
  const isOfPerson = tab.stored.tokens.some(isPerson);
  const last = useRef<string>(undefined);
  const read = useRef(() => Promise.resolve());
  useEffect(() => {
    read.current = () => readAgain(tab, last);
  });
  useEffect(() => {
    if (!isOfPerson) return undefined;
    const onFocus = () => void read.current();
    window.addEventListener("focus", onFocus);
    return () => window.removeEventListener("focus", onFocus);
  }, [isOfPerson]);
  useEffect(() => {
    if (rejections > 0) void read.current();
  }, [rejections]);
}

/** `last` is the previous response. Without a change, the projects are not read. */
async function readAgain(
  { stored, setStored, setKeys, open, forget, reject, rejectOne }: Tab,
  last: { current: string | undefined },
): Promise<void> {
  const before = stored.tokens.filter(isPerson);
  const [first] = before;
  if (first === undefined) return;
  const signedIn = await readRoles();
  if (signedIn === "ended") return reject(first);
  const answered = JSON.stringify([signedIn?.organizations, signedIn?.expires_at]);
  if (signedIn === undefined || answered === last.current) return;
  const tokens = tokensOf(signedIn);
  for (const token of before.filter((each) => !tokens.includes(each)))
    (token === stored.current ? rejectOne : forget)(token);
  const opened = await Promise.allSettled(tokens.map((token) => open(token, signedIn)));
  // After a failure, the next occasion reads everything again.
  last.current = opened.every(({ status }) => status === "fulfilled") ? answered : undefined;
  const fresh = opened.flatMap((each) =>
    each.status === "fulfilled" && each.value.kind === "server_key" ? [each.value] : [],
  );
  setKeys((all) => mergeSessions(all, fresh));
  const added = fresh.map(({ token }) => token);
  setStored((all) => ({ ...all, tokens: [...new Set([...all.tokens, ...added])] }));
}

/**
 * Keeps the client of a session, because requests of its pages are under way, unless its environment or its person is
 * another.
 */
export function mergeSessions(
  all: readonly KeySession[],
  fresh: readonly KeySession[],
): KeySession[] {
  const known = all.map((session) => {
    const found = fresh.find(({ token }) => token === session.token);
    if (found === undefined) return session;
    const isSame =
      found.me.key.environment_id === session.me.key.environment_id &&
      found.me.user.id === session.me.user.id;
    return isSame ? { ...session, me: found.me } : found;
  });
  const isKnown = ({ token }: KeySession) => all.some((session) => session.token === token);
  return [...known, ...fresh.filter((session) => !isKnown(session))];
}
