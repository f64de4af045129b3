import { useNavigate } from "@tanstack/react-router";
import { useCallback } from "react";

/** Returns a function that changes filters in the address, without a new entry in the history of the browser. */
export function useChangeSearch<Search extends object>(): (changed: Search) => void {
  const navigate = useNavigate();
  return useCallback(
    (changed) => {
      const search = (before: object) => ({ ...before, ...changed });
      void navigate({ to: ".", replace: true, search });
    },
    [navigate],
  );
}
