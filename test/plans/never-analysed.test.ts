import { testEveryState } from './every-state.ts';

testEveryState('never');
