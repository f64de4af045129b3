import "./styles/base.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app.tsx";
import { receiveKeys } from "./session/hand-over.ts";
import { hasCode, takeCode } from "./session/one-time-code.ts";
import { receivePerson } from "./session/receive-person.ts";
import { applyTheme, readTheme } from "./shell/theme.ts";

applyTheme(readTheme());
const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no element with the id root");
const opened = takeCode();
// A link that is pasted over the address of the sign-in page loads no page by itself.
window.addEventListener(
  "hashchange",
  () => hasCode(window.location.hash) && window.location.reload(),
);
if (opened === undefined) {
  await receiveKeys();
  await receivePerson();
}
createRoot(root).render(
  <StrictMode>
    <App opened={opened} />
  </StrictMode>,
);
