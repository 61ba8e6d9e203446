import { testEveryState } from './every-state.ts';

testEveryState('with one row');
