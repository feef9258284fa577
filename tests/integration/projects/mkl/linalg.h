#pragma once

// Computes c = a * b for square matrices in rows.
void multiply(int n, const double *a, const double *b, double *c);

// Solves a * x = b, where x holds b before; returns LAPACK's status.
int solve(int n, double *a, double *x);
