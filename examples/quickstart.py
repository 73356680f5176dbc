"""Rank a rare class, choose C by cross-validated AUC, and say how sure we are of the result."""

from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from aucmax import KernelAUCClassifier, KernelAUCClassifierCV, LinearAUCClassifierCV
from aucmax.metrics import compare_roc_auc, roc_auc_interval

X, y = make_classification(
    6000, 12, n_informative=6, n_clusters_per_class=4, weights=[0.95], random_state=0
)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

# 26 values of C by 3 bandwidths by 3 folds, and the fit on all rows, in a few solves
machine = KernelAUCClassifier(preset="paper", n_landmarks=400, random_state=0)
kernel = KernelAUCClassifierCV(machine, gammas=3).fit(X_train, y_train)
linear = LinearAUCClassifierCV().fit(X_train, y_train)

scores = kernel.decision_function(X_test)
auc, low, high, _ = roc_auc_interval(y_test, scores)
print(f"C = {kernel.C_:.3g}, gamma = {kernel.gamma_:.3g}: AUC {auc:.4f} ({low:.4f} to {high:.4f})")

test = compare_roc_auc(y_test, scores, linear.decision_function(X_test))
print(f"linear: AUC {test.auc_b:.4f}, difference {test.difference:+.4f}, p = {test.p_value:.2g}")
