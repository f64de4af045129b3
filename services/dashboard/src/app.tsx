import { RouterProvider } from "@tanstack/react-router";
import { useState } from "react";
import { RouterProvider as AriaRouterProvider, I18nProvider } from "react-aria-components";
import { InvitationPage } from "./account/invitation-page.tsx";
import { createKeyRouter, createOperatorRouter } from "./routes.tsx";
import { ConfirmationDialog } from "./session/confirmation-dialog.tsx";
import type { OneTimeCode } from "./session/one-time-code.ts";
import { type Session, SessionCache, SessionsProvider, useSessions } from "./session/session.tsx";
import { SignInPage } from "./session/sign-in-page.tsx";
import { LeaveGuardProvider } from "./ui/leave-guard-provider.tsx";
import { pageLocale } from "./ui/locale.ts";
import { Loading, Warning } from "./ui/panels.tsx";
import { Toasts } from "./ui/toasts.tsx";

/** `opened` is the code of the link with which the page was opened. */
export function App({ opened }: { opened: OneTimeCode | undefined }) {
  return (
    <I18nProvider locale={pageLocale}>
      <LeaveGuardProvider>
        <SessionsProvider>
          {opened === undefined ? <CurrentSession /> : <OpenedLink opened={opened} />}
          <ConfirmationDialog />
          <Toasts />
        </SessionsProvider>
      </LeaveGuardProvider>
    </I18nProvider>
  );
}

function OpenedLink({ opened }: { opened: OneTimeCode }) {
  if (opened.purpose === "link") return <SignInPage link={opened.code} />;
  return <InvitationPage {...opened} />;
}

function CurrentSession() {
  const { current, isReady } = useSessions();
  if (!isReady) return <Restoring />;
  if (current !== undefined) {
    // Another person begins with new pages, so that nobody saves what somebody else entered.
    const userId = current.kind === "server_key" ? current.me.user.id : "";
    return <SessionPages key={`${current.token} ${userId}`} session={current} />;
  }
  return <SignInPage />;
}

/** Until all keys of the tab are checked, no page is shown: it could be that of another project. */
function Restoring() {
  const { ended } = useSessions();
  return (
    <>
      <Loading label="Signing in" />
      {ended !== undefined && <Warning>{ended}</Warning>}
    </>
  );
}

/** The pages of one session. Each session has its own cache and router. */
function SessionPages({ session }: { session: Session }) {
  const [router] = useState(() =>
    session.kind === "operator" ? createOperatorRouter() : createKeyRouter(),
  );
  return (
    <SessionCache>
      <AriaRouterProvider navigate={(href) => void router.navigate({ href })}>
        <RouterProvider router={router} />
      </AriaRouterProvider>
    </SessionCache>
  );
}
