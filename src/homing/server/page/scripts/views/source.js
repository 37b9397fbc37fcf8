// A source of its own: its contents while nothing is asked, results while something is.

import { forgetDegraded } from "../messages.js";
import { Results } from "../results.js";
import { closeDetail } from "../detail.js";

const MOST = 20;

/** `browse` draws the contents into `main`, and is called again whenever the question is taken back. */
export function sourceView(main, source, browse) {
  const results = new Results(main, [source], MOST);
  let browsing = false;
  return {
    async hear(query) {
      if (query !== "") {
        browsing = false;
        await results.search(query);
      } else if (!browsing) {
        browsing = true;
        results.stop();
        closeDetail();
        forgetDegraded();
        await browse();
      }
    },
    leave() {
      results.stop();
    },
    /** Whether the contents are what is to be shown: what took a while to fetch may not be drawn over results. */
    browses: () => browsing,
    /** Draws the contents again, where they are what is shown. */
    async again() {
      if (browsing) await browse();
    },
  };
}
