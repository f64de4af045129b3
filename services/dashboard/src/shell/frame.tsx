import { useBlocker, useLocation } from "@tanstack/react-router";
import { Menu as MenuIcon, X } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";
import { isPerson } from "../session/person.ts";
import { useSessions } from "../session/session.tsx";
import { Button, IconButton } from "../ui/button.tsx";
import { useLeaveGuard } from "../ui/leave-guard.ts";
import { Logo } from "../ui/logo.tsx";
import { Warning } from "../ui/panels.tsx";
import { Navigation, type NavigationEntry } from "./navigation.tsx";
import styles from "./shell.module.css";

type FrameProps = {
  entries: readonly NavigationEntry[];
  /** Project and environment of the pages, in the header of narrow screens. */
  scope?: ReactNode;
  top?: ReactNode;
  bottom: ReactNode;
  banner?: ReactNode;
  children: ReactNode;
};

/**
 * The frame of all pages: navigation at the side, or behind a button on narrow screens, and the page. `top` and
 * `bottom` are above and below the navigation. No navigation, reload or closed window loses unsaved content of a page
 * without a question.
 */
export function Frame({ entries, scope, top, bottom, banner, children }: FrameProps) {
  const page = useLocation({ select: ({ pathname }) => pathname });
  // The menu is open on one page, so that each navigation closes it.
  const [openOn, setOpenOn] = useState<string>();
  const isOpen = openOn === page;
  const setOpen = (open: boolean) => setOpenOn(open ? page : undefined);
  useEscape(isOpen, () => setOpen(false));
  const { unsaved, mayLeave } = useLeaveGuard();
  useBlocker({
    shouldBlockFn: async () => !(await mayLeave()),
    disabled: unsaved === undefined,
  });
  return (
    <div className={styles.frame}>
      <a href="#content" className={styles.skip}>
        Skip to the content
      </a>
      <header className={`${styles.side} ${isOpen ? styles.open : ""}`}>
        <div className={styles.brand}>
          <Logo />
          {scope !== undefined && <p className={styles.where}>{scope}</p>}
          <span className={styles.toggle}>
            <IconButton
              icon={isOpen ? X : MenuIcon}
              iconSize={20}
              aria-expanded={isOpen}
              label={isOpen ? "Close the menu" : "Open the menu"}
              onPress={() => setOpen(!isOpen)}
            />
          </span>
        </div>
        <div className={styles.drawer}>
          {top}
          <Navigation entries={entries} onFollow={() => setOpen(false)} />
          <div className={styles.bottom}>{bottom}</div>
        </div>
      </header>
      <main id="content" className={styles.content} tabIndex={-1}>
        {banner}
        <RejectedKey />
        {children}
      </main>
    </div>
  );
}

function useEscape(isOpen: boolean, close: () => void): void {
  useEffect(() => {
    if (!isOpen) return undefined;
    const onKeyDown = ({ key }: KeyboardEvent) => key === "Escape" && close();
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  });
}

/** Warns that the key has ended while a page has unsaved content. Without such content, the session ends immediately. */
function RejectedKey() {
  const { current, isRejected, signInAgain } = useSessions();
  const { unsaved } = useLeaveGuard();
  if (!isRejected || current === undefined) return null;
  const isOfPerson = isPerson(current.token);
  const again = isOfPerson ? "Sign in again" : "Sign in with another key";
  return (
    <Warning
      action={
        <Button size="small" onPress={() => void signInAgain()}>
          Sign in again
        </Button>
      }
    >
      {isOfPerson
        ? "Your sign-in has ended, or you no longer have a role in this project."
        : "Your key is no longer valid: it was revoked, was rotated or has expired."}{" "}
      {unsaved === "draft"
        ? `${again} to save your changes: this tab keeps them until then.`
        : `What you entered can no longer be saved with it. Copy what you still need, then ${again.toLowerCase()}.`}
    </Warning>
  );
}
