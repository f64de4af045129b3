import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createContext, type ReactNode, use, useCallback, useEffect, useState } from "react";
import { type Api, createApi, unwrap } from "../api/client.ts";
import { isTemporary, isUnconfirmed } from "../api/problem.ts";
import type { ServerKeyIdentity, SignInMethod } from "../api/schema.d.ts";
import { useLeaveGuard } from "../ui/leave-guard.ts";
import { confirmSignIn } from "./confirmation.ts";
import { sendKeys } from "./hand-over.ts";
import {
  isPerson,
  openPerson,
  type Role,
  readRoles,
  type SignedIn,
  signOutPerson,
} from "./person.ts";
import { addKey, readKeys, removeKey, type StoredKeys, writeKeys } from "./stored-keys.ts";
import { useFreshRoles } from "./use-fresh-roles.ts";

/** The signed-in credentials with what they may access: a server key, or a person in a project (person.ts). */
export type KeySession = {
  kind: "server_key";
  /** Identifies the session in this tab. */
  token: string;
  /** Headers of requests that do not use `api`. */
  headers: Readonly<Record<string, string>>;
  api: Api;
  me: Me;
};

/** The project and the environments of a session, with the key or the roles that bound it. */
export type Me = Pick<ServerKeyIdentity, "environments"> & {
  user: Pick<ServerKeyIdentity["user"], "id" | "email" | "name">;
  organization: Pick<ServerKeyIdentity["organization"], "id" | "name">;
  project: Pick<ServerKeyIdentity["project"], "id" | "name">;
  key: Pick<
    ServerKeyIdentity["key"],
    "id" | "name" | "environment_id" | "environment_only" | "expires_at"
  >;
  /** Absent for a key. */
  roles?: {
    organization: Role | null;
    project: Role | null;
    environments: ReadonlyMap<string, Role | null>;
  };
  /** Absent for a key. */
  signIn?: { by: SignInMethod; endsAt: string };
};

type OperatorSession = { kind: "operator"; token: string; api: Api };
export type Session = KeySession | OperatorSession;

type Sessions = {
  current: Session | undefined;
  /** All keys of this tab. The operator's token is not among them. */
  keys: readonly KeySession[];
  /** False until the keys of this tab have been checked. */
  isReady: boolean;
  /** Why the last session ended, for the sign-in page. */
  ended: string | undefined;
  /** The API no longer accepts the current token. The session continues only while it has unsaved content. */
  isRejected: boolean;
  /**
   * Checks a token and uses it. Throws the error of the API. Like the next three functions, it asks before unsaved
   * content is lost. Returns whether the session was changed.
   */
  signIn(token: string): Promise<boolean>;
  switchTo(token: string): Promise<void>;
  signOut(token: string): Promise<void>;
  /** Ends the current session, whose token is rejected. Does not ask about a draft, because the tab keeps it. */
  signInAgain(): Promise<void>;
  /** Reads the names in a session again. */
  refresh(token: string): Promise<void>;
  /**
   * Ends the session of a token that the API no longer accepts, and says so on the sign-in page. Unsaved content delays
   * the end.
   */
  reject(token: string): void;
  /** Reads the session of the person again: the server has rejected a request, or the person has signed in again. */
  readRolesAgain(): void;
};

const SessionsContext = createContext<Sessions | undefined>(undefined);

export function useSessions(): Sessions {
  const sessions = use(SessionsContext);
  if (sessions === undefined) throw new Error("useSessions needs a SessionsProvider");
  return sessions;
}

/** Returns the session of a server key, on pages that only such sessions reach. */
export function useKeySession(): KeySession {
  const { current } = useSessions();
  if (current?.kind !== "server_key") throw new Error("this page needs a server key");
  return current;
}

export function useOperatorSession(): OperatorSession {
  const { current } = useSessions();
  if (current?.kind !== "operator") throw new Error("this page needs the operator's token");
  return current;
}

async function openKey(token: string, onRejected: () => void): Promise<Session> {
  const headers = { Authorization: `Bearer ${token}` };
  const api = createApi(headers, { onRejected });
  const me = await unwrap(api.GET("/api/v1/me"));
  return me.kind === "operator"
    ? { kind: "operator", token, api }
    : { kind: "server_key", token, headers, api, me };
}

const endedText = "A key is no longer valid: it was revoked, was rotated or has expired.";
const endedSessionText = "Your sign-in has ended, or you no longer have a role in the project.";
const endedTextOf = (token: string) => (isPerson(token) ? endedSessionText : endedText);

export type Tab = ReturnType<typeof useTab>;

/** The keys of this tab with their sessions, and the operator's session. */
function useTab() {
  const [stored, setStored] = useState<StoredKeys>(() => readKeys(sessionStorage));
  const [keys, setKeys] = useState<readonly KeySession[]>([]);
  const [operator, setOperator] = useState<OperatorSession>();
  const [ended, setEnded] = useState<string>();

  useEffect(() => writeKeys(sessionStorage, stored), [stored]);

  const forget = useCallback((token: string) => {
    setOperator((session) => (session?.token === token ? undefined : session));
    setKeys((sessions) => sessions.filter((session) => session.token !== token));
    setStored((before) => removeKey(before, token));
  }, []);

  const current = operator ?? keys.find(({ token }) => token === stored.current);
  const { isRejected, reject: rejectOne } = useRejected(current?.token, (token) => {
    setEnded(endedTextOf(token));
    forget(token);
  });
  const reject = useCallback(
    (token: string) => {
      // All projects of a person end with the person's session.
      const { tokens } = readKeys(sessionStorage);
      (isPerson(token) ? tokens.filter(isPerson) : [token]).forEach(rejectOne);
    },
    [rejectOne],
  );
  const inUse = current?.kind === "server_key" && !isRejected ? current.token : undefined;
  useEffect(() => (inUse === undefined ? undefined : sendKeys(stored, inUse)), [inUse, stored]);
  const [rejections, setRejections] = useState(0);
  const readRolesAgain = useCallback(() => setRejections((count) => count + 1), []);
  const open = useCallback(
    (token: string, signedIn?: SignedIn): Promise<Session> => {
      const onRejected = () =>
        void isInvalid(token).then((invalid) => (invalid ? reject(token) : undefined));
      const confirm = confirmSignIn;
      return isPerson(token)
        ? openPerson(token, { onRejected, onForbidden: readRolesAgain, confirm }, signedIn)
        : openKey(token, onRejected);
    },
    [reject, readRolesAgain],
  );

  return {
    stored,
    setStored,
    keys,
    setKeys,
    setOperator,
    current,
    ended,
    setEnded,
    forget,
    isRejected,
    reject,
    rejectOne,
    open,
    rejections,
    readRolesAgain,
  };
}

/** Tokens that the API no longer accepts. The session of the current one ends when it has no unsaved content. */
function useRejected(current: string | undefined, end: (token: string) => void) {
  const [tokens, setTokens] = useState<readonly string[]>([]);
  const { unsaved } = useLeaveGuard();
  const ending = tokens.filter((token) => token !== current || unsaved === undefined);
  useEffect(() => {
    if (ending.length === 0) return;
    ending.forEach(end);
    setTokens((all) => all.filter((token) => !ending.includes(token)));
  });
  return {
    isRejected: current !== undefined && tokens.includes(current),
    reject: useCallback((token: string) => setTokens((others) => [...others, token]), []),
  };
}

/** Opens the sessions of the stored keys. Returns whether all keys were checked. */
function useRestoredKeys({ stored, open, forget, setEnded, setKeys }: Tab) {
  const [isReady, setReady] = useState(false);
  const done = (restored: readonly KeySession[]) => {
    setKeys(restored);
    setReady(true);
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: keys are restored once, when the page loads.
  useEffect(() => restoreKeys({ tokens: stored.tokens, open, forget, fail: setEnded, done }), []);
  return isReady;
}

/** Keeps the sessions of this tab. Server keys survive a reload; the operator's token does not. */
export function SessionsProvider({ children }: { children: ReactNode }) {
  const tab = useTab();
  const { setStored, keys, setKeys, setOperator, ended, setEnded } = tab;
  const { current, forget, isRejected, reject, open } = tab;
  const { unsaved, mayLeave } = useLeaveGuard();
  const isReady = useRestoredKeys(tab);
  useFreshRoles(tab, tab.rejections);

  async function signIn(token: string): Promise<boolean> {
    const session = await open(token);
    if (token !== current?.token && !(await mayLeave())) return false;
    setEnded(undefined);
    setOperator(session.kind === "operator" ? session : undefined);
    if (session.kind === "operator") return true;
    setKeys((others) => [...others.filter((other) => other.token !== token), session]);
    setStored((before) => addKey(before, token));
    return true;
  }
  const value: Sessions = {
    current,
    keys,
    isReady,
    ended,
    isRejected,
    signIn,
    async switchTo(token) {
      if (token === current?.token || !(await mayLeave())) return;
      setOperator(undefined);
      setStored((before) => addKey(before, token));
    },
    async signOut(token) {
      if (!(await mayLeave())) return;
      const address = isPerson(token) ? await signOutPerson() : undefined;
      for (const each of isPerson(token) ? tab.stored.tokens.filter(isPerson) : [token])
        forget(each);
      if (address !== undefined) window.location.assign(address);
    },
    async signInAgain() {
      if (current === undefined || !(unsaved === "draft" || (await mayLeave()))) return;
      setEnded(endedTextOf(current.token));
      forget(current.token);
    },
    async refresh(token) {
      const session = await open(token);
      if (session.kind === "server_key") setKeys((all) => replaceMe(all, session));
    },
    reject,
    readRolesAgain: tab.readRolesAgain,
  };
  return <SessionsContext value={value}>{children}</SessionsContext>;
}

const replaceMe = (keys: readonly KeySession[], { token, me }: KeySession) =>
  keys.map((key) => (key.token === token ? { ...key, me } : key));

/**
 * Returns whether management rejects a token. The other services learn of a new key a moment later, so their 401 alone
 * does not end a session.
 */
async function isInvalid(token: string): Promise<boolean> {
  if (isPerson(token)) return (await readRoles()) === "ended";
  const headers = { Authorization: `Bearer ${token}` };
  const response = await fetch("/api/v1/me", { headers }).catch(() => undefined);
  return response?.status === 401;
}

/** Returns whether a key may be valid although its check failed. */
const mayBeValid = (error: unknown) => isTemporary(error) || isUnconfirmed(error);

/** Time between two attempts to restore keys while Halyard cannot be reached. */
const restorePauseMs = 2_000;

/**
 * Restores the sessions of all stored keys in parallel. Drops keys that are no longer valid, and retries while Halyard
 * cannot be reached. Returns a function that stops the retries.
 */
function restoreKeys(options: {
  tokens: readonly string[];
  open: (token: string) => Promise<Session>;
  forget: (token: string) => void;
  fail: (why: string | undefined) => void;
  done: (restored: readonly KeySession[]) => void;
}): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let hasEnded = false;

  async function attempt(): Promise<void> {
    const outcomes = await Promise.allSettled(options.tokens.map((token) => options.open(token)));
    if (hasEnded) return;
    const errors = outcomes.flatMap(({ status, reason }: { status: string; reason?: unknown }) =>
      status === "rejected" ? [reason] : [],
    );
    const temporary = errors.find(mayBeValid);
    if (temporary instanceof Error) {
      options.fail(`${temporary.message} It is tried again.`);
      timer = setTimeout(() => void attempt(), restorePauseMs);
      return;
    }
    const rejected = options.tokens.filter((_, index) => outcomes[index]?.status === "rejected");
    options.fail(rejected[0] === undefined ? undefined : endedTextOf(rejected[0]));
    rejected.forEach(options.forget);
    options.done(
      outcomes.flatMap((outcome) =>
        outcome.status === "fulfilled" && outcome.value.kind === "server_key"
          ? [outcome.value]
          : [],
      ),
    );
  }

  void attempt();
  return () => {
    hasEnded = true;
    clearTimeout(timer);
  };
}

/** Maximum repetitions of a read after a temporary failure. */
const maxRetries = 3;

/** Gives a session its own cache, so that nothing of one key is shown with another. Needs the token as its React key. */
export function SessionCache({ children }: { children: ReactNode }) {
  const [client] = useState(createQueryClient);
  return <QueryClientProvider client={client}>{children}</QueryClientProvider>;
}

function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        retry: (count, error) => count < maxRetries && isTemporary(error),
        // The stream of changes invalidates what is shown.
        staleTime: 60_000,
        // A lost connection shows as such, and is not waited for.
        networkMode: "always",
      },
      mutations: { networkMode: "always" },
    },
  });
}
