import { HalyardProvider, useFlag, useSuspenseFlag, useValue } from "@halyard/react";
import { StrictMode, Suspense, useMemo, useState } from "react";
import { createRoot } from "react-dom/client";

declare const halyardOptions: { baseUrl: string; clientKey: string };

function App() {
  const [user, setUser] = useState("anna");
  const options = useMemo(() => ({ ...halyardOptions, context: { id: user } }), [user]);
  return (
    <HalyardProvider options={options}>
      <label>
        User{" "}
        <select value={user} onChange={(event) => setUser(event.target.value)}>
          <option>anna</option>
          <option>bruno</option>
        </select>
      </label>
      <Suspense fallback={<p>Loading the flags …</p>}>
        <Checkout />
      </Suspense>
      <Banner />
    </HalyardProvider>
  );
}

/** Waits for the values, so that nobody sees the old checkout for a moment. */
function Checkout() {
  const isNew = useSuspenseFlag("new-checkout");
  const color = useValue("checkout-color", "black");
  return (
    <p>
      Checkout: <output style={{ color }}>{isNew ? "new" : "old"}</output>
    </p>
  );
}

/** Starts with its fallback, and appears when the value arrives. */
function Banner() {
  return useFlag("new-checkout") ? <p>Try our new checkout!</p> : null;
}

createRoot(document.querySelector("main") as HTMLElement).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
