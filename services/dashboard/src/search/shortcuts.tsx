import { Keyboard, Search } from "lucide-react";
import { lazy, Suspense, useEffect, useState } from "react";
import { Button, IconButton } from "../ui/button.tsx";
import type { SearchedPage } from "./find-results.ts";

const SearchDialog = lazy(async () => ({
  default: (await import("./search-dialog.tsx")).SearchDialog,
}));
const KeysDialog = lazy(async () => ({ default: (await import("./keys-dialog.tsx")).KeysDialog }));

type Opened = "search" | "keys";

/** Buttons and keys that open the search and the help on the keys. */
export function Shortcuts({ pages }: { pages: readonly SearchedPage[] }) {
  const [opened, setOpened] = useState<Opened>();
  const close = () => setOpened(undefined);
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const wanted = openedBy(event);
      if (wanted === undefined || isBusy(event.composedPath()[0])) return;
      event.preventDefault();
      setOpened(wanted);
    };
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, []);
  return (
    <div>
      <Button variant="quiet" onPress={() => setOpened("search")}>
        <Search size={16} aria-hidden /> Search
      </Button>
      <IconButton icon={Keyboard} label="Keys" onPress={() => setOpened("keys")} />
      <Suspense>
        {opened === "search" && <SearchDialog pages={pages} onClose={close} />}
        {opened === "keys" && <KeysDialog onClose={close} />}
      </Suspense>
    </div>
  );
}

type PressedKey = Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey">;

/** Returns the dialog that a key opens. Keyboards differ in the keys with Shift, so only the character counts. */
function openedBy({ key, ctrlKey, metaKey, altKey }: PressedKey): Opened | undefined {
  if (altKey) return undefined;
  if (ctrlKey || metaKey) return key.toLowerCase() === "k" ? "search" : undefined;
  if (key === "/") return "search";
  return key === "?" ? "keys" : undefined;
}

/** Returns whether a person types in a field, or a dialog is open. Notices have another role. */
function isBusy(target: EventTarget | undefined): boolean {
  const field =
    "input:not([type='checkbox'], [type='range']), textarea, [contenteditable], [role='spinbutton']";
  const isTyping = target instanceof Element && target.closest(field) !== null;
  return isTyping || document.querySelector("[role='dialog']") !== null;
}
