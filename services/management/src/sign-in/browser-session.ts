import {
  type LiveSession,
  type PeopleDirectory,
  readSessionCookie,
  type SessionCookie,
  sessionCookieName,
} from "@halyard/people";

/** Returns the session of a `Cookie` header; undefined for one that has ended or was not used for too long. */
export type FindBrowserSession = (cookieHeader: string | undefined) => BrowserSession | undefined;

export type BrowserSession = LiveSession & { cookie: SessionCookie };

export function createFindBrowserSession({
  people,
  publicUrl,
  now,
}: {
  people: Pick<PeopleDirectory, "session">;
  publicUrl: URL;
  now: () => Date;
}): FindBrowserSession {
  return (cookieHeader) => {
    const cookie = readSessionCookie(cookieHeader, sessionCookieName(publicUrl));
    const nowMs = now().getTime();
    const session = cookie && people.session(cookie, nowMs);
    return session && session.idleUntilMs > nowMs ? { ...session, cookie } : undefined;
  };
}
