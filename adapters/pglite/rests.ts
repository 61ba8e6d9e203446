/** What was cut off since others waited comes again after one round, then after 2, 4, … and at most so many: a quarter of an hour. */
const MOST_REST = 64;

/** What was cut off, and when it comes again: the statements of a table know nothing of those of another. */
export interface Rests {
    /** Another round has come. @returns Whether something that was cut off is due again. */
    pass(): boolean;
    /** Does it unless it rests; what is done is forgotten, what is cut off rests longer each time. */
    unlessResting(name: string, act: (cuts: number) => Promise<boolean>): Promise<void>;
}

/** Nothing rests at first. */
export function restsOf(): Rests {
    const cutOff = new Map<string, { cuts: number; rounds: number }>();
    return {
        pass() {
            for (const [name, one] of cutOff) {
                one.rounds -= 1;
                if (one.rounds < 0) {
                    // It was due in the last round, and there was nothing to do any more.
                    cutOff.delete(name);
                }
            }
            return [...cutOff.values()].some(({ rounds }) => rounds <= 0);
        },

        async unlessResting(name, act) {
            const { cuts, rounds } = cutOff.get(name) ?? { cuts: 0, rounds: 0 };
            if (rounds > 0) {
                return;
            }
            cutOff.delete(name);
            if (!(await act(cuts))) {
                cutOff.set(name, { cuts: cuts + 1, rounds: Math.min(2 ** cuts, MOST_REST) });
            }
        },
    };
}
